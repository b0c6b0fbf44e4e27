import type { Config } from '../config/index.ts';
import { asIs, type Enclose, hideFolder, hidingFault } from '../tools/index.ts';
import type { Log } from './runtime.ts';

/** How programs of tools are started: so that they find the data directory empty, where the system allows that. */
export async function hideData(config: Config, log: Log): Promise<Enclose> {
  if (!startsPrograms(config)) return asIs;
  const { enclose, fault } = await hideFolder(config.daemon.data);
  if (fault !== null) {
    log.warn(
      { fault, fix: 'docs/security.md, "Tools and the daemon"' },
      'programs that tools start can read the data directory and operate this daemon',
    );
  }
  return enclose;
}

/** Why programs of tools can read the data directory; null: they cannot, or there are none. */
export async function composeEnclosureFault(config: Config): Promise<string | null> {
  return startsPrograms(config) ? hidingFault() : null;
}

function startsPrograms({ agents, tools }: Config): boolean {
  const servers = Object.values(tools.mcpServers);
  return (
    agents.some((agent) => agent.tools.includes('shell')) ||
    servers.some(({ transport }) => transport === 'command')
  );
}
