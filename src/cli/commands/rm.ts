import type { Command } from 'commander';
import type { Act } from '../act.ts';
import { withDaemon } from '../find-daemon.ts';
import { conversationId } from '../options.ts';

export function addRm(program: Command, act: Act): void {
  program
    .command('rm')
    .description('delete a conversation and its files; again is fine')
    .argument('<conversation>', 'its id', conversationId)
    .action((conversation: string, _options: object, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const answer = await client.request('delete', { conversation });
          if (context.json) context.value(answer);
          else if (answer.existed === false) context.line(`no conversation ${JSON.stringify(conversation)}`);
          else context.line(`${conversation} is deleted`);
          return 0;
        }),
      ),
    );
}
