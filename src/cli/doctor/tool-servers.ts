import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import type { ToolServerSummary } from '../../client/index.ts';
import type { Config, McpServerConfig } from '../../config/index.ts';
import type { Context } from '../context.ts';
import { withDaemon } from '../find-daemon.ts';
import type { Check } from './check.ts';

/**
 * Checks the MCP servers of the configuration. A running daemon reports their state. Without one, it only checks that their
 * programs exist: a diagnosis must not start foreign programs.
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

/** Null: no daemon answers; the check of the daemon reports the reason. */
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
    return check('warn', `the running daemon does not know ${what}`, fix);
  }
  switch (seen.state) {
    case 'ready':
      if (seen.unaccepted)
        return check(
          'warn',
          `${what} added or changed ${seen.unaccepted.join(', ')} since its tools were accepted: each call waits for approval`,
          'read their descriptions; an approved call accepts the tool as it is',
        );
      if (seen.leftOut)
        return check(
          'warn',
          `connected with ${count(seen.tools.length)}; left out: ${seen.leftOut.join('; ')}`,
          'agents do without them until the server changes what the reason names: docs/guides/tools-and-approvals.md',
        );
      return seen.tools.length === 0
        ? check('warn', 'connected; it offers no tools', `check that ${key} is the right server`)
        : check('ok', `connected with ${count(seen.tools.length)}: ${seen.tools.join(', ')}`);
    case 'connecting':
      return check('warn', `${what} is being started`, 'run doctor again: the server has a minute to answer');
    case 'failed':
      return check(
        'fail',
        `${what} failed: ${seen.error ?? 'without an error message'}`,
        server.transport === 'command'
          ? `run it in the folder of tools.project to see its output, or correct ${key}; the daemon retries automatically`
          : `check that it runs and accepts these headers, or correct ${key}; the daemon retries automatically`,
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
  if (server.transport === 'http') return check('ok', `${what}, not checked: no daemon is running`);
  const found = await findProgram(server.command, directory, server.env.PATH?.reveal() ?? path);
  if (found !== null) return check('ok', `${found}, not started: no daemon is running`);
  return check('fail', `program ${server.command} was not found`, `install it, or correct ${key}`);
}

/** Searches like the system does for a process in `directory`. */
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

/** Arguments and the query of an address are not shown, because they may contain tokens. */
function place(name: string, server: McpServerConfig): { readonly key: string; readonly what: string } {
  const key = `tools.mcpServers.${name}.${server.transport === 'http' ? 'url' : 'command'}`;
  if (server.transport === 'command') return { key, what: server.command };
  const { origin, pathname } = new URL(server.url);
  return { key, what: `${origin}${pathname}` };
}

function count(tools: number): string {
  return tools === 1 ? '1 tool' : `${tools} tools`;
}

/** Whether programs that tools start can read the daemon's data, or do not start because they could. */
export async function enclosureChecks({ dependencies }: Context, config: Config): Promise<Check[]> {
  const fault = await (await dependencies.daemon()).enclosureFault(config);
  if (fault === null) return [];
  const guide = 'docs/guides/security.md, "Tools and the daemon"';
  const name = 'programs of tools';
  const { unhidden, mcpServers } = config.tools;
  const servers = Object.values(mcpServers).filter((server) => server.transport === 'command');
  const hasShell = config.agents.some(({ tools }) => tools.includes('shell'));
  if (unhidden || (!hasShell && servers.every((server) => server.unhidden))) {
    const message = `they can read the data directory and control this daemon: ${fault}`;
    return [{ name, status: 'warn', message, fix: `allow user namespaces, then remove unhidden: ${guide}` }];
  }
  const message = `they are not started, since the data directory cannot be hidden from them: ${fault}`;
  const fix = `allow user namespaces, or accept that they read it (unhidden: true): ${guide}`;
  return [{ name, status: 'fail', message, fix }];
}
