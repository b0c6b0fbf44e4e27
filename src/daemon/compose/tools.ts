import { join } from 'node:path';
import type { Toolbox } from '../../agents/index.ts';
import type { Config } from '../../config/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import { openLazyDocument, storePaths } from '../../persistence/jsonl/index.ts';
import {
  asIs,
  type Conversations,
  createBuiltInTools,
  createToolbox,
  type Enclose,
  hideFolder,
  hidingFault,
  LONGEST_CALL_MS,
} from '../../tools/index.ts';
import type { AcceptedTools } from '../../tools/mcp/index.ts';
import type { Log } from '../runtime.ts';

/** Selects the tools for a configuration. MCP tools are loaded only if a server is configured. */

/** Longer than the timeout of any tool, so that the tool's own error is reported. */
const TOOL_TIMEOUT_MS = LONGEST_CALL_MS + 30_000;

/** What tools need while calls run. */
export interface ToolContext extends Conversations {
  readonly store?: ConversationStore;
  readonly enclose?: Enclose;
}

/** Tools without a process of their own; enough to explain a request, even with no open conversation. */
export function composeBuiltInTools(config: Config, log?: Log, context?: ToolContext): Toolbox {
  const { data, store: kind } = config.daemon;
  const outputs = storePaths(data).output;
  const records = kind === 'file' ? undefined : context?.store?.toolRecords;
  const storedOutput = records && ((...named: [string, string]) => records.readOutput(...named));
  const { project, environment, protected: names } = config.tools;
  const protection = { names, folders: [config.directory] };
  const given = { project, environment, outputs, storedOutput, closed: [data], protection, log };
  return createBuiltInTools({ ...given, conversations: context, enclose: context?.enclose });
}

/** All tools of this configuration. */
export async function composeToolbox(config: Config, log: Log, context: ToolContext): Promise<Toolbox> {
  const { mcpServers, project, environment, risk } = config.tools;
  const enclose = await hideData(config, log);
  const parts = [composeBuiltInTools(config, log, { ...context, enclose })];
  if (Object.keys(mcpServers).length > 0) {
    const { createMcpTools } = await import('../../tools/mcp/index.ts');
    const accepted = await openAcceptedTools(config.daemon.data, log);
    const servers = createMcpTools({ servers: mcpServers, project, environment, enclose, accepted, log });
    servers.start();
    await servers.settled(); // an outstanding call needs its tool
    parts.push(servers);
  }
  return createToolbox(parts, { risk, timeoutMs: TOOL_TIMEOUT_MS, log });
}

/** Hides the data directory from programs that tools start, if the system supports that. */
async function hideData(config: Config, log: Log): Promise<Enclose> {
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

/** Why programs of tools can read the data directory; null: they cannot, or there are no programs. */
export async function composeHidingFault(config: Config): Promise<string | null> {
  return startsPrograms(config) ? hidingFault() : null;
}

function startsPrograms({ agents, tools }: Config): boolean {
  const servers = Object.values(tools.mcpServers);
  return (
    agents.some((agent) => agent.tools.includes('shell')) ||
    servers.some(({ transport }) => transport === 'command')
  );
}

/** The accepted tools of MCP servers, by server and tool. Stored in the data directory of each daemon. */
type Servers = Record<string, Record<string, string>>;

async function openAcceptedTools(data: string, log: Log): Promise<AcceptedTools> {
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

/** Throws for an invalid form: then the document starts empty. */
function parse(value: unknown): Servers {
  const isRecord = (one: unknown): one is object =>
    typeof one === 'object' && one !== null && !Array.isArray(one);
  const isText = (one: unknown) => typeof one === 'string';
  const isFit =
    isRecord(value) && Object.values(value).every((one) => isRecord(one) && Object.values(one).every(isText));
  if (!isFit) throw new Error('it holds no digests of tools');
  return value as Servers;
}
