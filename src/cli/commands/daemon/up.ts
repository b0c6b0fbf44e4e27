import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, Option } from 'commander';
import { type Config, CRASH_POINTS_VARIABLE, secretValuesOf } from '../../../config/index.ts';
import type { Readiness, SkipUntil } from '../../../daemon/index.ts';
import { hideValues } from '../../../kernel/index.ts';
import { type Act, type Context, loadConfig } from '../../context.ts';
import { startWarnings } from '../../doctor/check.ts';
import type { Io } from '../../io.ts';
import { commandLine, skipUntil } from '../../options/options.ts';
import { createConsoleTelemetry, createLog } from '../../output/log.ts';
import { type Palette, voiceOf } from '../../render/text.ts';
import { offerProject } from '../offline/init.ts';
import { consoleUrl } from './status.ts';

interface UpOptions {
  readonly config?: string;
  readonly store?: string;
  readonly http?: string;
  readonly httpToken?: string;
  readonly watch?: boolean;
  readonly replay?: boolean;
  readonly skipUntil?: SkipUntil;
  readonly install?: boolean;
  readonly allowCrashPoints?: boolean;
}

/** The exit code after a second signal. */
const FORCED = 1;

export function addUp(program: Command, act: Act): void {
  const added = program
    .command('up')
    .description('run the daemon; --nats managed (the default) starts its own nats-server')
    .option('--config <dir>', 'the configuration (PARLEY_CONFIG; default: config)')
    .addOption(
      new Option('--store <kind>', 'where logs are stored (PARLEY_STORE; default: file)').choices([
        'file',
        'jetstream',
      ]),
    )
    .option('--http <address>', 'HOST:PORT, or off (PARLEY_HTTP; default: 127.0.0.1:7420)')
    .option('--http-token <token>', 'or none; visible in process lists (PARLEY_HTTP_TOKEN is safer)')
    .option('--watch', 'reload when a file of the configuration changes; `parley reload` does it once')
    .option('--replay', 'answer all posts that the server still has and these logs do not')
    .addOption(
      new Option('--skip-until <where>', 'answer no post up to a sequence, an ISO time or `now`')
        .argParser(skipUntil)
        .conflicts('replay'),
    )
    .option('--install', 'install a missing nats-server, also without a terminal to ask on')
    .option('--no-install', 'do not install a missing nats-server; print the command instead')
    .addOption(new Option('--allow-crash-points', 'for tests').hideHelp());
  act(added, up);
}

async function up(context: Context, options: UpOptions): Promise<number> {
  const { io } = context;
  const { config: folder, store, http, httpToken, allowCrashPoints } = options;
  const shown = io.hideEnvironment();
  await offerProject(context, folder);
  const secrets = new Set<string>();
  const load = async () => {
    const loaded = await loadConfig(context, folder, { store, http, httpToken });
    for (const secret of secretValuesOf(loaded)) secrets.add(secret);
    return loaded;
  };
  const config = await load();
  const { createDaemon, crashPointsFrom } = await context.dependencies.daemon();
  const reach = allowCrashPoints ? crashPointsFrom(io.env) : undefined;
  const log = await createLog(context, (text) => hideValues(secrets)(text));
  for (const notice of config.notices) log.warn({}, notice);
  if (!allowCrashPoints && io.env[CRASH_POINTS_VARIABLE])
    log.warn({}, `${CRASH_POINTS_VARIABLE} is ignored without --allow-crash-points: it is for tests`);
  if (shown !== null && config.tools.unhidden)
    log.warn({ fault: shown }, 'programs that tools start can read the variables of this daemon');
  const telemetry =
    config.telemetry === 'console'
      ? createConsoleTelemetry(io, () => log.warn({}, 'stdout was closed: telemetry ends'))
      : null;
  const daemon = createDaemon({
    config,
    load,
    log,
    telemetry: telemetry?.emit,
    isReplay: options.replay,
    skipUntil: options.skipUntil,
    mayInstall: options.install,
    reach,
  });
  let starting: Promise<unknown> = Promise.resolve();
  let unwatch = () => {};
  const reload = (why: string) => void starting.then(() => daemon.reload(why)).catch(() => {}); // logged
  const onHangup = () => reload('SIGHUP');
  const signals = watchSignals(io, onHangup, async (signal) => {
    log.info({ signal }, 'stopping; another signal ends at once');
    await daemon.stop();
  });
  try {
    const started = daemon.start();
    starting = started;
    const ready = await started;
    for (const warning of await startWarnings(config.directory, config.daemon.data)) log.warn({}, warning);
    if (!signals.fired) {
      announce(context, config, ready);
      telemetry?.open();
    }
    if (options.watch) unwatch = watchFolder(config.directory, () => reload('--watch'));
    await signals.stopped;
    if (telemetry && !(await telemetry.close())) io.exitNow(0); // unread output would keep the process alive
    return 0;
  } finally {
    unwatch();
    await daemon.stop();
    signals.release();
  }
}

/**
 * The first signal starts the shutdown (`stopped`), the second one ends the process. A second SIGHUP does not: the kernel and
 * the shell each send one when a terminal is closed. SIGHUP from anywhere else only calls `onHangup`.
 */
function watchSignals(io: Io, onHangup: () => void, onFirst: (signal: string) => Promise<void>) {
  const signals = { fired: false, stopped: Promise.resolve(), release: () => {} };
  signals.stopped = new Promise((resolve, reject) => {
    signals.release = io.onSignal((signal) => {
      if (signals.fired) {
        if (signal !== 'SIGHUP') io.exitNow(FORCED);
        return;
      }
      if (signal === 'SIGHUP' && !io.isTerminalClosed()) return onHangup();
      signals.fired = true;
      onFirst(signal).then(resolve, reject);
    });
  });
  signals.stopped.catch(() => {}); // reported where it is awaited
  return signals;
}

function announce(context: Context, config: Config, ready: Readiness): void {
  const { io } = context;
  const { codeKey, ...facts } = ready;
  const { pid, nats, http, agents, store, daemon } = facts;
  const event = { event: 'ready', pid, nats, http, agents, store, ...(daemon && { daemon }) };
  context.result(event, () => {
    const isDefault = config.daemon.data === resolve(io.workingDirectory, 'data');
    const data = context.options.data ?? (isDefault ? undefined : config.daemon.data);
    const typed = (words: string) => commandLine(io, { data }, words);
    const url = http && codeKey ? consoleUrl(http, codeKey.reveal(), 0) : http;
    // Other output is stored in a journal or a file, which must not get the token.
    const page = http && codeKey && io.stdout.isTTY !== true ? typed('token --url') : url;
    const more = { data: config.daemon.data, chat: typed('chat'), console: page };
    return renderBanner({ ...facts, ...more }, context.palette);
  });
}

export interface BannerFacts extends Omit<Readiness, 'codeKey'> {
  readonly data: string;
  /** The command to chat with the agents. */
  readonly chat: string;
  /** The console's address, or the command that prints it; null without HTTP. */
  readonly console?: string | null;
}

/** The ready message for people: addresses, agents, and the next commands. */
export function renderBanner(facts: BannerFacts, palette: Palette): string {
  const { pid, nats, http, agents, store, daemon, data, chat, console } = facts;
  const row = (name: string, value: string) => `  ${palette.dim(name.padEnd(7))} ${value}`;
  return [
    '',
    `${palette.bold('Parley is up')} ${palette.dim(`(process ${pid})`)}`,
    '',
    row('nats', nats),
    row('http', http ?? 'off'),
    row('data', `${data} ${palette.dim(`(${store} store)`)}`),
    ...(daemon ? [row('daemon', daemon)] : []),
    row('agents', agents.map((slug) => voiceOf(slug, palette)(slug)).join(', ')),
    '',
    `Chat with them in another terminal:  ${palette.bold(chat)}`,
    ...(console ? [`Or in a browser:  ${palette.bold(console)}`] : []),
    palette.dim('Ctrl-C stops it.'),
    '',
  ].join('\n');
}

/** Editors write a file in several steps. */
const QUIET_MS = 200;

/**
 * Calls back after files below the folder changed and none has for a moment. Returns how to stop. It compares the files, because
 * `fs.watch` of Node 20 and 22 loses each one that an editor replaced.
 */
function watchFolder(folder: string, onChange: () => void): () => void {
  let isOver = false;
  const watch = async () => {
    let last = await stateOf(folder);
    for (let known = last; !isOver; ) {
      await sleep(QUIET_MS, undefined, { ref: false });
      const now = await stateOf(folder);
      if (now === last && now !== known && !isOver) {
        known = now;
        onChange();
      }
      last = now;
    }
  };
  void watch();
  return () => {
    isOver = true;
  };
}

async function stateOf(folder: string): Promise<string> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const facts = names.sort().map(async (name) => {
    const { ino, size, mtimeMs } = (await stat(join(folder, name)).catch(() => null)) ?? {};
    return [name, ino, size, mtimeMs];
  });
  return JSON.stringify(await Promise.all(facts));
}
