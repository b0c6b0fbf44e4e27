import { join } from 'node:path';
import type { Config } from '../config/index.ts';
import { openLazyDocument } from '../persistence/jsonl/index.ts';
import { asIs, type Enclose, hideFolder, hidingFault } from '../tools/index.ts';
import type { AcceptedTools } from '../tools/mcp/index.ts';
import type { Log } from './runtime.ts';

/** How programs of tools are started: so that they find the data directory empty, where the system allows that. */
export async function hideData(config: Config, log: Log): Promise<Enclose> {
  if (!startsPrograms(config)) return asIs;
  const { enclose, fault } = await hideFolder(config.daemon.data);
  if (fault !== null) {
    log.warn(
      { fault, fix: 'docs/guides/protect-the-machine.md, "Tools and the daemon"' },
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

/** The tools of MCP servers that were accepted, in the data directory: each daemon has its own list. */

type Servers = Record<string, Record<string, string>>;

export async function openAcceptedTools(data: string, log: Log): Promise<AcceptedTools> {
  const document = await openLazyDocument<Servers>({
    path: join(data, 'accepted-tools.json'),
    empty: {},
    parse,
    log: (event) => log.warn({ ...event }, 'the list of accepted tools of MCP servers'),
  });
  let servers = document.data;
  return {
    of: (server) => (Object.hasOwn(servers, server) ? servers[server] : undefined),
    async save(server, digests) {
      servers = { ...servers, [server]: { ...digests } };
      document.change(() => servers);
      await document.flush();
    },
  };
}

/** Throws for another form: then the document starts anew. */
function parse(value: unknown): Servers {
  const isRecord = (one: unknown): one is object =>
    typeof one === 'object' && one !== null && !Array.isArray(one);
  const isText = (one: unknown) => typeof one === 'string';
  const isFit =
    isRecord(value) && Object.values(value).every((one) => isRecord(one) && Object.values(one).every(isText));
  if (!isFit) throw new Error('it holds no digests of tools');
  return value as Servers;
}
