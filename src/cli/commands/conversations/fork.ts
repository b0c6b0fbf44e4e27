import type { Command } from 'commander';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { conversationId, entryIndex } from '../../options/options.ts';
import { actorOf, addPublisherOption } from '../../options/publisher.ts';
import { renderState } from '../../render/conversation.ts';

interface ForkOptions {
  readonly as: string;
  readonly publisher?: string;
  readonly at?: number;
}

export function addFork(program: Command, act: Act): void {
  const added = program
    .command('fork')
    .description('continue a copy of a conversation from any entry; can be repeated')
    .argument('<conversation>', 'its id', conversationId)
    .requiredOption('--as <id>', 'the id of the copy', conversationId)
    .option('--at <index>', 'the last entry of the copy (default: the newest)', entryIndex);
  addPublisherOption(added).action(
    (conversation: string, { as, at, publisher }: ForkOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const request = {
            conversation,
            as,
            at,
            ...actorOf(context, publisher === undefined ? {} : { publisher }),
          };
          const detail = await client.request('fork', request);
          if (context.json) context.value(detail);
          else context.line(renderState(detail));
          return 0;
        }),
      ),
  );
}
