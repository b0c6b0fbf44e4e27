import type { Command } from 'commander';
import type { Act } from '../act.ts';
import type { Context } from '../context.ts';
import { withDaemon } from '../find-daemon.ts';
import { conversationId } from '../options.ts';
import { erasedText } from '../render/erased.ts';

export function addRm(program: Command, act: Act): void {
  program
    .command('rm')
    .description('delete a conversation and its files; again is fine')
    .argument('<conversation>', 'its id', conversationId)
    .action((conversation: string, _options: object, command: Command) =>
      act(command, (context) => remove(context, conversation)),
    );
}

function remove(context: Context, conversation: string): Promise<number> {
  return withDaemon(context, async (client) => {
    const answer = await client.request('delete', { conversation });
    if (context.json) context.value(answer);
    else for (const line of erasedText(conversation, answer)) context.line(line);
    return 0;
  });
}
