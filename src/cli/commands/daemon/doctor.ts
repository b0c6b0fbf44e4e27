import type { Command } from 'commander';
import type { AgentSummary, ToolServerSummary } from '../../../client/index.ts';
import {
  type Config,
  namesServer,
  revealed,
  secretValuesOf,
  withoutCredentials,
} from '../../../config/index.ts';
import { escapeHidden, hideValues } from '../../../kernel/index.ts';
import { type Act, type Context, loadConfig, withDocuments } from '../../context.ts';
import {
  type Check,
  dataCheck,
  foreignConfiguration,
  named,
  nodeCheck,
  openConfiguration,
} from '../../doctor/check.ts';
import { agentChecks, deepChecks, modelChecks, probeChecks } from '../../doctor/models.ts';
import {
  codingChecks,
  enclosureChecks,
  natsServerCheck,
  natsServersChecks,
  toolServerChecks,
} from '../../doctor/servers.ts';
import { joinedServers, type Servers, withDaemon } from '../../find-daemon.ts';
import type { Io } from '../../io.ts';
import { noEffect } from '../../options/options.ts';
import { indent, type Palette, plural } from '../../render/text.ts';

export function addDoctor(program: Command, act: Act): void {
  const added = program
    .command('doctor')
    .description('check the installation, and print how to fix each problem')
    .option('--config <dir>', 'the configuration (PARLEY_CONFIG; default: config)')
    .option(
      '--probe',
      'call each model with one short request, start each MCP server and coding agent, and load config/tools/*.ts',
    )
    .option(
      '--deep',
      'with --probe: hold a short tool conversation with each model, and print which habits of its provider hold',
    );
  act(added, async (context, options: DoctorOptions) => {
    if (options.deep && !options.probe) throw noEffect('deep', 'add --probe: it calls each model');
    let failed = false;
    const secrets: string[] = [];
    for await (const { name, status, message, fix } of checks(context, options, secrets)) {
      const hide = hideValues(secrets);
      const next = fix === undefined ? {} : { fix: withDocuments(context.io, hide(fix)) };
      failed ||= status === 'fail';
      const hidden = { name: hide(name), status, message: hide(message), ...next };
      context.result(hidden, (check) => renderCheck(check, context.palette));
    }
    return failed ? 1 : 0;
  });
}

interface DoctorOptions {
  readonly config?: string;
  readonly probe?: boolean;
  readonly deep?: boolean;
}

/** In the order in which a person should fix problems. */
async function* checks(
  context: Context,
  { config: folder, probe, deep }: DoctorOptions,
  secrets: string[],
): AsyncGenerator<Check> {
  yield nodeCheck(context.io.nodeVersion);
  const { io } = context;
  const isTrusted = probe || namesServer(io.env, context.options);
  const looking = isTrusted ? context : { ...context, io: { ...io, env: withoutCredentials(io.env) } };
  const config = await loadConfig(looking, folder).catch((error: unknown) => error as Error);
  const { ok, fail, ...other } = named('configuration');
  if (config instanceof Error) {
    const { message, hint } = context.failure(config);
    yield fail(message, hint);
  } else {
    secrets.push(...secretValuesOf(config));
    const found = `${plural(config.agents.length, 'agent')} in ${config.directory}`;
    const { directory } = config;
    const open = (await openConfiguration(directory)) ?? (await foreignConfiguration(directory));
    const message = [found, ...config.notices, ...(open ? [open.message] : [])].join('\n');
    yield open ? { ...other, fail }[open.status](message, `run: ${open.command}`) : ok(message);
    yield* config.environmentFiles.map(environmentCheck);
    yield* probe ? await probeChecks(context, config) : modelChecks(config);
    if (deep) yield* await deepChecks(context, config);
  }
  const servers = await serversOf(context, config);
  yield await natsServerCheck(context, servers ? 'url' : 'managed');
  if (servers) yield* await natsServersChecks(context, servers);
  if (servers && !isTrusted) yield* withheldCheck(io.env, servers);
  yield await dataCheck(context);
  const { check, agents, toolServers } = await askDaemon(context);
  yield check;
  if (config instanceof Error) return;
  yield* agentChecks(config, agents);
  const { PATH = '' } = io.env;
  if (!probe) yield* await toolServerChecks(config, toolServers, PATH);
  if (!probe) yield* await codingChecks(config, PATH);
  yield* await enclosureChecks(context, config);
}

/** OWN-SOURCE-1: a diagnosis does not trust the folder that it looks at. */
function withheldCheck(env: Io['env'], { shown }: Servers): Check[] {
  const kept = withoutCredentials(env);
  const names = Object.keys(env).filter((name) => env[name] && !(name in kept));
  if (names.length === 0) return [];
  const message = `${names.join(', ')} of the environment was not sent to ${shown}, which a file of this folder names`;
  const fix =
    'set PARLEY_NATS, or use --nats, to name the server; `parley doctor --probe` trusts the configuration';
  return [named('variables').warn(message, fix)];
}

/** Names only, never values. */
function environmentCheck({ file, names }: Config['environmentFiles'][number]): Check {
  const message = names.length > 0 ? `${file} sets ${names.join(', ')}` : `nothing is used from ${file}`;
  return named('variables').ok(message);
}

/** The servers of the configuration, or of the running daemon; null: the daemon manages its own server. */
async function serversOf(context: Context, config: Config | Error): Promise<Servers | null> {
  if (!(config instanceof Error) && config.daemon.nats.kind === 'url') {
    const { nats } = config.daemon;
    const prefix = context.options.prefix ?? config.subjectPrefix;
    return { shown: nats.url, options: { ...revealed(nats), prefix } };
  }
  return joinedServers(context).catch(() => null); // the check of the daemon reports the cause
}

export function renderCheck({ name, status, message, fix }: Check, palette: Palette): string {
  const mark = { ok: palette.green('ok  '), warn: palette.yellow('warn'), fail: palette.red('fail') }[status];
  const [first = '', ...rest] = escapeHidden(message).split('\n');
  const lines = [`${mark}  ${palette.bold(name)}: ${first}`, ...rest.map((line) => `      ${line}`)];
  if (fix !== undefined) lines.push(indent(`→ ${escapeHidden(fix)}`, '      '));
  return lines.join('\n');
}

interface Asked {
  readonly check: Check;
  /** What the running daemon knows; null: it does not answer. */
  readonly agents: readonly AgentSummary[] | null;
  readonly toolServers: readonly ToolServerSummary[] | null;
}

/** A daemon that does not run is a warning, not a failure. */
async function askDaemon(context: Context): Promise<Asked> {
  const { ok, warn, fail } = named('daemon');
  try {
    return await withDaemon(context, async ({ client }) => {
      const { agents } = await client.request('agents', {});
      const tools = await client.request('tools', {}).catch(() => null);
      const check = ok(`answers on ${client.url}, ${plural(agents.length, 'agent')}`);
      return { check, agents, toolServers: tools?.servers ?? null };
    });
  } catch (error) {
    const { code, message, hint } = context.failure(error);
    const check = (code === 'DAEMON_NOT_RUNNING' ? warn : fail)(message, hint);
    return { check, agents: null, toolServers: null };
  }
}
