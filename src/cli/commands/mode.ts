import { Argument, type Command } from 'commander';
import { type Mode, modeSchema } from '../../client/index.ts';
import type { Act } from '../act.ts';
import { withDaemon } from '../find-daemon.ts';
import { conversationId } from '../options.ts';
import { publisherOf } from '../publisher.ts';
import { renderState } from '../render/conversation.ts';

export function addMode(program: Command, act: Act): void {
  program
    .command('mode')
    .description('enter a mode')
    .argument('<conversation>', 'its id', conversationId)
    .addArgument(new Argument('<mode>').choices(modeSchema.options))
    .option('--agent <slug>', 'the agent that gets the floor')
    .option('--workflow <id>', 'the workflow, with mode run')
    .action(
      (conversation: string, mode: Mode, options: { agent?: string; workflow?: string }, command: Command) =>
        act(command, (context) =>
          withDaemon(context, async (client) => {
            const detail = await client.request('mode', {
              conversation,
              mode,
              ...options,
              publisher: publisherOf(context),
            });
            if (context.json) context.value(detail);
            else context.line(renderState(detail));
            return 0;
          }),
        ),
    );
}
