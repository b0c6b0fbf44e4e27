import { Argument, type Command } from 'commander';
import { MODES, type Mode } from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { conversationId } from '../../options/options.ts';
import { type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';
import { renderState } from '../../render/conversation.ts';

interface ModeOptions extends ActorOptions {
  readonly agent?: string;
  readonly workflow?: string;
  readonly input?: string;
}

export function addMode(program: Command, act: Act): void {
  const added = program
    .command('mode')
    .description('enter a mode')
    .argument('<conversation>', 'its id', conversationId)
    .addArgument(new Argument('<mode>').choices(MODES))
    .option('--agent <slug>', 'the agent that gets the floor')
    .option('--workflow <id>', 'the workflow, with mode run')
    .option('--input <text>', 'the first message of the run (default: the next message to its agent)');
  addActorOptions(added).action(
    (conversation: string, mode: Mode, { agent, workflow, input, ...who }: ModeOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const detail = await client.request('mode', {
            conversation,
            mode,
            agent,
            workflow,
            input,
            ...actorOf(context, who),
          });
          if (context.json) context.value(detail);
          else context.line(renderState(detail));
          return 0;
        }),
      ),
  );
}
