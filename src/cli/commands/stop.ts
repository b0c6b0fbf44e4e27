import type { Command } from 'commander';
import type { Act } from '../act.ts';
import { withDaemon } from '../find-daemon.ts';
import { conversationId } from '../options.ts';
import { type ActorOptions, actorOf, addActorOptions } from '../publisher.ts';

interface Switch {
  readonly verb: 'stop' | 'resume';
  readonly description: string;
  readonly done: string;
}

export const addStop = (program: Command, act: Act): void =>
  addSwitch(program, act, {
    verb: 'stop',
    description: 'abort running turns, and start none until `resume`',
    done: 'is stopped',
  });

export const addResume = (program: Command, act: Act): void =>
  addSwitch(program, act, { verb: 'resume', description: 'let turns run again', done: 'may go on' });

function addSwitch(program: Command, act: Act, { verb, description, done }: Switch): void {
  const added = program
    .command(verb)
    .description(description)
    .argument('<conversation>', 'its id', conversationId)
    .argument('[agent]', 'this agent alone; everybody by default');
  addActorOptions(added).action(
    (conversation: string, agent: string | undefined, options: ActorOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const actor = actorOf(context, options);
          const detail = await client.request(verb, { conversation, agent, ...actor });
          if (context.json) context.value(detail);
          else context.line(`${conversation}: ${agent ?? 'everybody'} ${done}`);
          return 0;
        }),
      ),
  );
}
