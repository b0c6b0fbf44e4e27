import type { Command } from 'commander';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { conversationId } from '../../options/options.ts';
import { type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';
import { renderState } from '../../render/conversation.ts';

export function addPhase(program: Command, act: Act): void {
  const added = program
    .command('phase')
    .description('enter a phase')
    .argument('<conversation>', 'its id', conversationId)
    .argument(
      '<phase>',
      'chat, brainstorm, plan, execute, verification, chores, reflection, or one of your own',
    );
  addActorOptions(added).action(
    (conversation: string, phase: string, options: ActorOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const detail = await client.request('phase', {
            conversation,
            phase,
            ...actorOf(context, options),
          });
          if (context.json) context.value(detail);
          else context.line(renderState(detail));
          return 0;
        }),
      ),
  );
}
