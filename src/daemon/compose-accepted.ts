import { join } from 'node:path';
import { openLazyDocument } from '../persistence/jsonl/index.ts';
import type { AcceptedTools } from '../tools/mcp/index.ts';
import type { Log } from './runtime.ts';

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
