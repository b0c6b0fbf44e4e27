import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import type { ToolServerSummary } from '../../client/index.ts';
import type { Config, McpServerConfig } from '../../config/index.ts';
import type { Context } from '../context.ts';
import { withDaemon } from '../find-daemon.ts';
import type { Check } from './check.ts';

/**
 * The MCP servers of the configuration. A running daemon is asked how they are; without one it is only looked whether
 * they could be started: starting a program of somebody else is nothing that a diagnosis should do.
 */
export async function toolServerChecks(context: Context, config: Config): Promise<Check[]> {
  const configured = Object.entries(config.tools.mcpServers);
  if (configured.length === 0) return [];
  const running = await askDaemon(context);
  return Promise.all(
    configured.map(([name, server]) => {
      if (running === null) return unstarted(name, server, config.tools.project, context.io.env.PATH ?? '');
      return asSeen(
        name,
        server,
        running.find((one) => one.server === name),
      );
    }),
  );
}

/** Null: no daemon says anything; the check of the daemon tells why. */
async function askDaemon(context: Context): Promise<readonly ToolServerSummary[] | null> {
  try {
    return await withDaemon(context, async (client) => (await client.request('tools', {})).servers);
  } catch {
    return null;
  }
}

function asSeen(name: string, server: McpServerConfig, seen: ToolServerSummary | undefined): Check {
  const check = checkOf(name, server);
  const { key, what } = place(name, server);
  if (!seen) {
    const fix = 'restart the daemon: it runs with another configuration';
    return check('warn', `${what} is not known to the daemon that runs`, fix);
  }
  switch (seen.state) {
    case 'ready':
      if (seen.unaccepted)
        return check(
          'warn',
          `${what} added or changed ${seen.unaccepted.join(', ')} since its tools were accepted: each call waits for approval`,
          'read what the server says of them; an approved call accepts the tool as it is',
        );
      return seen.tools.length === 0
        ? check('warn', 'connected; it offers no tool', `does ${key} name the right server?`)
        : check('ok', `connected with ${count(seen.tools.length)}: ${seen.tools.join(', ')}`);
    case 'connecting':
      return check('warn', `${what} is being started`, 'ask again: it has a minute to answer');
    case 'failed':
      return check(
        'fail',
        `${what} failed: ${seen.error ?? 'it did not say why'}`,
        server.transport === 'command'
          ? `run it by hand in the folder of tools.project to see what it says, or correct ${key}; the daemon tries again by itself`
          : `see that it runs and takes these headers, or correct ${key}; the daemon tries again by itself`,
      );
  }
}

async function unstarted(
  name: string,
  server: McpServerConfig,
  directory: string,
  path: string,
): Promise<Check> {
  const check = checkOf(name, server);
  const { key, what } = place(name, server);
  if (server.transport === 'http') return check('ok', `${what}, not asked: no daemon runs`);
  const found = await findProgram(server.command, directory, server.env.PATH?.reveal() ?? path);
  if (found !== null) return check('ok', `${found}, not started: no daemon runs`);
  return check('fail', `there is no program ${server.command}`, `install it, or correct ${key}`);
}

/** As the system would find it for a process in `directory`. */
async function findProgram(command: string, directory: string, path: string): Promise<string | null> {
  const candidates =
    isAbsolute(command) || command.includes('/')
      ? [resolve(directory, command)]
      : path.split(delimiter).map((folder) => join(resolve(directory, folder), command));
  for (const candidate of candidates) {
    const isThere = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return candidate;
  }
  return null;
}

function checkOf(server: string, { transport }: McpServerConfig) {
  const name = `MCP server ${server} (${transport === 'http' ? 'HTTP' : 'program'})`;
  return (status: Check['status'], message: string, fix?: string): Check => ({
    name,
    status,
    message,
    ...(fix === undefined ? {} : { fix }),
  });
}

/** Neither arguments nor the query of an address are shown: people put tokens there. */
function place(name: string, server: McpServerConfig): { readonly key: string; readonly what: string } {
  const key = `tools.mcpServers.${name}.${server.transport === 'http' ? 'url' : 'command'}`;
  if (server.transport === 'command') return { key, what: server.command };
  const { origin, pathname } = new URL(server.url);
  return { key, what: `${origin}${pathname}` };
}

function count(tools: number): string {
  return tools === 1 ? '1 tool' : `${tools} tools`;
}
