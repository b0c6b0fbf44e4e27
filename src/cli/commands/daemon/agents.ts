import type { Command } from 'commander';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { renderAgents } from '../../render/agents.ts';

export function addAgents(program: Command, act: Act): void {
  program
    .command('agents')
    .description('list the agents')
    .action((_options: object, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const { agents } = await client.request('agents', {});
          if (context.json) for (const agent of agents) context.value(agent);
          else context.line(renderAgents(agents, context.palette));
          return 0;
        }),
      ),
    );
}
