import { join } from 'node:path';
import { z } from 'zod';
import { openLazyDocument } from '../persistence/jsonl/index.ts';
import type { AcceptedTools } from '../tools/mcp/index.ts';
import type { Log } from './runtime.ts';

/** The tools of MCP servers that were accepted, in the data directory: each daemon has its own list. */

type Servers = Record<string, Record<string, string>>;

const schema = z.record(z.string(), z.record(z.string(), z.string()));

export async function openAcceptedTools(data: string, log: Log): Promise<AcceptedTools> {
  const document = await openLazyDocument<Servers>({
    path: join(data, 'accepted-tools.json'),
    empty: {},
    parse: (value) => schema.parse(value),
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
