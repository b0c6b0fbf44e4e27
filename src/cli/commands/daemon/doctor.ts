import type { Command } from 'commander';
import { type Config, namesServer, secretValuesOf, withoutCredentials } from '../../../config/index.ts';
import { escapeHidden, hideValues } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { type Check, nodeCheck } from '../../doctor/check.ts';
import { dataCheck } from '../../doctor/data.ts';
import { agentChecks, modelChecks } from '../../doctor/models.ts';
import { natsServerCheck, natsServersChecks } from '../../doctor/nats-server.ts';
import { foreignConfiguration, openConfiguration } from '../../doctor/permissions.ts';
import { probeChecks } from '../../doctor/probe.ts';
import { enclosureChecks, toolServerChecks } from '../../doctor/tool-servers.ts';
import { joinedServers, natsOptions, type Servers, withDaemon } from '../../find-daemon.ts';
import type { Io } from '../../io.ts';
import { loadConfig } from '../../load-config.ts';
import { configFlags } from '../../options/options.ts';
import { withDocuments } from '../../output/documents.ts';
import type { Palette } from '../../render/palette.ts';
import { indent, plural } from '../../render/text.ts';

export function addDoctor(program: Command, act: Act): void {
  program
    .command('doctor')
    .description('check the installation, and print how to fix each problem')
    .option('--config <dir>', 'the configuration (PARLEY_CONFIG; default: config)')
    .option(
      '--probe',
      'call each model with one short request, start each MCP server, and load config/tools/*.ts',
    )
    .action((options: { config?: string; probe?: boolean }, command: Command) =>
      act(command, async (context) => {
        let failed = false;
        const secrets: string[] = [];
        for await (const found of checks(context, options, secrets)) {
          const hide = hideValues(secrets);
          const { name, status, message, fix } = found;
          const hidden = { name: hide(name), status, message: hide(message) };
          const check = fix === undefined ? hidden : { ...hidden, fix: withDocuments(context.io, hide(fix)) };
          failed ||= check.status === 'fail';
          if (context.json) context.value(check);
          else context.line(renderCheck(check, context.palette));
        }
        return failed ? 1 : 0;
      }),
    );
}

/** In the order in which a person should fix problems. */
async function* checks(
  context: Context,
  { config: folder, probe }: { config?: string; probe?: boolean },
  secrets: string[],
): AsyncGenerator<Check> {
  yield nodeCheck(context.io.nodeVersion);
  const { io } = context;
  const isTrusted = probe || namesServer(io.env, configFlags(context.options));
  const looking = isTrusted ? context : { ...context, io: { ...io, env: withoutCredentials(io.env) } };
  const config = await loadConfig(looking, folder).catch((error: unknown) => error as Error);
  if (config instanceof Error) {
    const { message, hint } = context.failure(config);
    yield { name: 'configuration', status: 'fail', message, ...(hint === undefined ? {} : { fix: hint }) };
  } else {
    secrets.push(...secretValuesOf(config));
    const found = `${plural(config.agents.length, 'agent')} in ${config.directory}`;
    const { directory } = config;
    const open = (await openConfiguration(directory)) ?? (await foreignConfiguration(directory));
    const message = [found, ...config.notices, ...(open ? [open.message] : [])].join('\n');
    if (open) yield { name: 'configuration', status: open.status, message, fix: `run: ${open.command}` };
    else yield { name: 'configuration', status: 'ok', message };
    yield* config.environmentFiles.map(environmentCheck);
    yield* await (probe ? probeChecks(context, config) : modelChecks(config, io.env));
  }
  const servers = await serversOf(context, config);
  yield await natsServerCheck(context.io.env, servers ? 'url' : 'managed');
  if (servers) yield* await natsServersChecks(context, servers);
  if (servers && !isTrusted) yield* withheldCheck(io.env, servers);
  yield await dataCheck(context);
  yield await daemonCheck(context);
  if (config instanceof Error) return;
  yield* await agentChecks(context, config);
  if (!probe) yield* await toolServerChecks(context, config);
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
  return [{ name: 'variables', status: 'warn', message, fix }];
}

/** Names only, never values. */
function environmentCheck({ file, names }: Config['environmentFiles'][number]): Check {
  const message = names.length > 0 ? `${file} sets ${names.join(', ')}` : `nothing is used from ${file}`;
  return { name: 'variables', status: 'ok', message };
}

/** The servers of the configuration, or of the running daemon; null: the daemon manages its own server. */
async function serversOf(context: Context, config: Config | Error): Promise<Servers | null> {
  if (!(config instanceof Error) && config.daemon.nats.kind === 'url') {
    const { nats } = config.daemon;
    const prefix = context.options.prefix ?? config.subjectPrefix;
    return { shown: nats.url, options: { ...natsOptions(nats), prefix } };
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

/** A daemon that does not run is a warning, not a failure. */
async function daemonCheck(context: Context): Promise<Check> {
  const name = 'daemon';
  try {
    return await withDaemon(context, async (client) => {
      const { agents } = await client.request('agents', {});
      return { name, status: 'ok', message: `answers on ${client.url}, ${plural(agents.length, 'agent')}` };
    });
  } catch (error) {
    const { code, message, hint } = context.failure(error);
    const status = code === 'DAEMON_NOT_RUNNING' ? 'warn' : 'fail';
    return { name, status, message, ...(hint === undefined ? {} : { fix: hint }) };
  }
}
