import type { Command } from 'commander';
import type { Act } from '../act.ts';
import { withDaemon } from '../find-daemon.ts';
import { conversationId } from '../options.ts';
import { publisherOf } from '../publisher.ts';

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
  program
    .command(verb)
    .description(description)
    .argument('<conversation>', 'its id', conversationId)
    .argument('[agent]', 'this agent alone; everybody by default')
    .action((conversation: string, agent: string | undefined, _options: object, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const publisher = publisherOf(context);
          const detail = await client.request(verb, { conversation, agent, publisher });
          if (context.json) context.value(detail);
          else context.line(`${conversation}: ${agent ?? 'everybody'} ${done}`);
          return 0;
        }),
      ),
    );
}
