import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Config, McpServerConfig } from '../../config/index.ts';
import { isAtLeast, splitUrls } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import type { Servers } from '../find-daemon.ts';
import { failureOf } from '../render/text.ts';
import { type Check, named } from './check.ts';

/** A diagnosis must not start foreign programs: only `--probe` does. */
export function unstartedChecks({ agents, tools }: Config): Check[] {
  const coding = agents.filter(({ acp }) => acp).map(({ slug }) => codingAgent(slug));
  const servers = Object.keys(tools.mcpServers).map((name) => named(`MCP server ${name}`));
  const how = '`parley doctor --probe` starts it';
  return [
    ...servers.map(({ ok }) => ok(`not checked: ${how}; \`parley status\` shows those of a running daemon`)),
    ...coding.map(({ ok }) => ok(`not checked: ${how}`)),
  ];
}

export const codingAgent = (slug: string) => named(`agent ${slug} (runtime: acp)`);

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

const PLACES = ['/usr/sbin', '/usr/local/bin', '/usr/local/sbin', '/opt/homebrew/bin'];
const OLDEST = [2, 9, 10] as const;

type Environment = Readonly<Record<string, string | undefined>>;

/** Checks only; `up` installs a missing server. Not needed if the daemon uses an external server. */
export async function natsServerCheck(env: Environment, joins: 'managed' | 'url'): Promise<Check> {
  const { ok, warn, fail } = named('nats-server');
  if (joins === 'url') return ok('not needed: the daemon uses a server by URL');
  const version = await findVersion(env);
  if (version === null)
    return fail(
      'not found',
      'sudo apt-get install nats-server, or brew install nats-server, or the official release at https://github.com/nats-io/nats-server/releases; or set NATS_BIN to its path',
    );
  if (!isAtLeast(version, OLDEST))
    return fail(
      `${version} is too old: Parley needs ${OLDEST.join('.')} or newer`,
      'install a newer nats-server, or set NATS_BIN to its path',
    );
  if (isAtLeast(version, [2, 10])) return ok(version);
  return warn(
    `${version} syncs to disk about once a second`,
    'install 2.10 or newer, which syncs each accepted message at once',
  );
}

async function findVersion(env: Environment): Promise<string | null> {
  const candidates = env.NATS_BIN
    ? [env.NATS_BIN]
    : ['nats-server', ...PLACES.map((place) => `${place}/nats-server`)];
  for (const candidate of candidates) {
    const options = { env: { PATH: env.PATH ?? '' }, timeout: 5_000 };
    const printed = await promisify(execFile)(candidate, ['--version'], options).catch(() => null);
    const [, version] = /v?(\d+\.\d+\.\d+)/.exec(printed?.stdout ?? '') ?? [];
    if (version) return version;
  }
  return null;
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
