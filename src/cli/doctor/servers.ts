import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import type { ToolServerSummary } from '../../client/index.ts';
import { type Config, type McpServerConfig, workFolder } from '../../config/index.ts';
import { isAtLeast, splitUrls } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import type { Servers } from '../find-daemon.ts';
import { failureOf, plural } from '../render/text.ts';
import { type Check, named } from './check.ts';

/**
 * Checks the MCP servers of the configuration. A running daemon reports their state. Without one (`running` is null), it only
 * checks that their programs exist: a diagnosis must not start foreign programs.
 */
export function toolServerChecks(
  { tools }: Config,
  running: readonly ToolServerSummary[] | null,
  path: string,
): Promise<Check[]> {
  return Promise.all(
    Object.entries(tools.mcpServers).map(([name, server]) =>
      running === null
        ? unstarted(name, server, tools.project, path)
        : asSeen(
            name,
            server,
            running.find((one) => one.server === name),
          ),
    ),
  );
}

function asSeen(name: string, server: McpServerConfig, seen: ToolServerSummary | undefined): Check {
  const { ok, warn, fail } = checkOf(name, server);
  const what = placeOf(server);
  const key = keyOf(name, server);
  if (!seen)
    return warn(
      `the running daemon does not know ${what}`,
      'restart the daemon: it runs with another configuration',
    );
  switch (seen.state) {
    case 'ready': {
      const count = `connected with ${plural(seen.tools.length, 'tool')}`;
      const tools = seen.tools.length === 0 ? count : `${count}: ${seen.tools.join(', ')}`;
      if (seen.unaccepted)
        return warn(
          `${what} added or changed ${seen.unaccepted.join(', ')} since its tools were accepted: each call waits for approval`,
          'read their descriptions; an approved call accepts the tool as it is',
        );
      if (seen.leftOut)
        return warn(
          `${tools}; left out: ${seen.leftOut.join('; ')}`,
          'agents do without them until the server changes what the reason names: docs/guides/tools-and-approvals.md',
        );
      return seen.tools.length === 0
        ? warn('connected; it offers no tools', `check that ${key} is the right server`)
        : ok(tools);
    }
    case 'connecting':
      return warn(`${what} is being started`, 'run doctor again: the server has a minute to answer');
    case 'failed':
      return fail(
        `${what} failed: ${seen.error ?? 'without an error message'}`,
        seen.error?.includes('needs login')
          ? `run \`parley mcp login ${name}\`, or configure a token in its headers; the daemon uses a new login at once`
          : server.transport === 'command'
            ? `run it in the folder of tools.project to see its output, or correct ${key}; the daemon retries automatically`
            : `check that it runs and accepts these headers, or correct ${key}; the daemon retries automatically`,
      );
  }
}

/** The programs of coding agents exist: only `--probe` starts foreign programs. */
export async function codingChecks({ agents, tools }: Config, path: string): Promise<Check[]> {
  const coding = agents.flatMap(({ slug, acp }) => (acp ? [{ slug, acp }] : []));
  return Promise.all(
    coding.map(async ({ slug, acp }) => {
      const { ok, fail } = codingAgent(slug);
      const [program = ''] = acp.command;
      const folder = workFolder(tools.project, acp);
      const found = await findProgram(program, folder, acp.env.PATH?.reveal() ?? path);
      if (found !== null) return ok(`${found}, not started: \`parley doctor --probe\` starts it`);
      return fail(`program ${program} was not found`, `install it, or correct command in agents/${slug}.md`);
    }),
  );
}

async function unstarted(
  name: string,
  server: McpServerConfig,
  directory: string,
  path: string,
): Promise<Check> {
  const { ok, fail } = checkOf(name, server);
  if (server.transport === 'http') return ok(`${placeOf(server)}, not checked: no daemon is running`);
  const found = await findProgram(server.command, directory, server.env.PATH?.reveal() ?? path);
  if (found !== null) return ok(`${found}, not started: no daemon is running`);
  return fail(`program ${server.command} was not found`, `install it, or correct ${keyOf(name, server)}`);
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

const checkOf = (server: string, { transport }: McpServerConfig) =>
  named(`MCP server ${server} (${transport === 'http' ? 'HTTP' : 'program'})`);

export const codingAgent = (slug: string) => named(`agent ${slug} (runtime: acp)`);

const keyOf = (name: string, { transport }: McpServerConfig) =>
  `tools.mcpServers.${name}.${transport === 'http' ? 'url' : 'command'}`;

/** Arguments and the query of an address are not shown, because they may contain tokens. */
export function placeOf(server: McpServerConfig): string {
  if (server.transport === 'command') return server.command;
  const { origin, pathname } = new URL(server.url);
  return `${origin}${pathname}`;
}

/** Whether programs that tools start can read the daemon's data, or do not start because they could. */
export async function enclosureChecks({ dependencies }: Context, config: Config): Promise<Check[]> {
  const fault = await (await dependencies.daemon()).enclosureFault(config);
  if (fault === null) return [];
  const guide = 'docs/guides/security.md, "Tools and the daemon"';
  const { warn, fail } = named('programs of tools');
  const { unhidden, mcpServers } = config.tools;
  const servers = Object.values(mcpServers).filter((server) => server.transport === 'command');
  const hasShell = config.agents.some(({ tools }) => tools.includes('shell'));
  if (unhidden || (!hasShell && servers.every((server) => server.unhidden)))
    return [
      warn(
        `they can read the data directory and control this daemon: ${fault}`,
        `allow user namespaces, then remove unhidden: ${guide}`,
      ),
    ];
  return [
    fail(
      `they are not started, since the data directory cannot be hidden from them: ${fault}`,
      `allow user namespaces, or accept that they read it (unhidden: true): ${guide}`,
    ),
  ];
}

type Finding = {
  readonly io: Pick<Context['io'], 'env'>;
  readonly dependencies: Pick<Context['dependencies'], 'daemon'>;
};

/** Checks only; `up` installs a missing server. Not needed if the daemon uses an external server. */
export async function natsServerCheck(
  { dependencies, io }: Finding,
  joins: 'managed' | 'url',
): Promise<Check> {
  const { ok, warn, fail } = named('nats-server');
  if (joins === 'url') return ok('not needed: the daemon uses a server by URL');
  const { findNatsServer } = await dependencies.daemon();
  const skipped: string[] = [];
  try {
    const found = await findNatsServer({ env: io.env, log: (_, line) => skipped.push(line) });
    if (found === null)
      return fail(
        ['not found', ...skipped].join('; '),
        'sudo apt-get install nats-server, or brew install nats-server, or the official release at https://github.com/nats-io/nats-server/releases; or set NATS_BIN to its path',
      );
    if (isAtLeast(found.version, [2, 10])) return ok(found.version);
    return warn(
      `${found.version} syncs to disk about once a second`,
      'install 2.10 or newer, which syncs each accepted message at once',
    );
  } catch (error) {
    const { message, hint } = failureOf(error);
    return fail(message, hint);
  }
}

/** Checks each external server. An unusable one is a failure only if no other is usable. */
export async function natsServersChecks(context: Context, { shown, options }: Servers): Promise<Check[]> {
  const urls = splitUrls(options.url);
  const { checkJetStream } = await context.dependencies.daemon();
  const checks = await Promise.all(
    splitUrls(shown).map(async (url, place): Promise<Check> => {
      const { ok, fail } = named(`server ${url}`);
      try {
        const untold = await checkJetStream({ ...options, url: urls[place] ?? url, name: 'parley-doctor' });
        return ok(untold === null ? 'reachable' : `reachable; this user may not check JetStream: ${untold}`);
      } catch (error) {
        const { message, hint } = failureOf(error);
        return fail(message, hint);
      }
    }),
  );
  const isReachable = checks.some(({ status }) => status === 'ok');
  return checks.map((check) =>
    check.status === 'fail' && isReachable ? { ...check, status: 'warn' } : check,
  );
}
