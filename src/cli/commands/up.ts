import { type Command, Option } from 'commander';
import type { Config } from '../../config/index.ts';
import type { Context } from '../context.ts';
import type { Io } from '../io.ts';
import { loadConfig } from '../load-config.ts';
import { createLog } from '../logging.ts';
import type { Act } from '../program.ts';
import { renderBanner } from '../render/banner.ts';
import { wantsColour } from '../render/palette.ts';
import type { RunningDaemon } from '../rooms.ts';

interface UpOptions {
  readonly config?: string;
  readonly store?: string;
  readonly http?: string;
}

/** The exit code of a process that its person did not want to wait for. */
const FORCED = 1;

export function addUp(program: Command, act: Act): void {
  program
    .command('up')
    .description('run the daemon; --nats managed (the default) brings a nats-server of its own')
    .option('--config <dir>', 'the configuration (PARLEY_CONFIG; default: config)')
    .addOption(
      new Option('--store <kind>', 'where logs are kept (PARLEY_STORE; default: file)').choices([
        'file',
        'jetstream',
      ]),
    )
    .option('--http <address>', 'HOST:PORT, or off (PARLEY_HTTP; default: 127.0.0.1:7420)')
    .action((options: UpOptions, command: Command) => act(command, (context) => up(context, options)));
}

async function up(context: Context, { config: folder, store, http }: UpOptions): Promise<number> {
  const { io } = context;
  const config = await loadConfig(context, folder, { store, http });
  const log = createLog({
    stream: io.stderr,
    readable: io.stderr.isTTY === true,
    colour: wantsColour(io.stderr, io.env),
    level: context.options.verbose ? 'debug' : 'info',
  });
  for (const notice of config.notices) log.warn({}, notice);
  const { createDaemon } = await context.rooms.daemon();
  const daemon = createDaemon({ config, log });
  const signals = watchSignals(io, daemon, (signal) =>
    log.info({ signal }, 'stopping; another signal ends at once'),
  );
  try {
    const starting = daemon.start();
    // A signal while starting: what start() then says is of no interest to anybody.
    const first = await Promise.race([starting, signals.stopped.then(() => null)]);
    if (first === null) starting.catch(() => {});
    else announce(context, config, first);
    await signals.stopped;
    return 0;
  } finally {
    await daemon.stop();
    signals.release();
  }
}

/** Resolves when the first signal's stop is done; the second one ends the process. */
function watchSignals(io: Io, daemon: RunningDaemon, onFirst: (signal: string) => void) {
  let release = () => {};
  let count = 0;
  const stopped = new Promise<void>((resolve, reject) => {
    release = io.onSignal((signal) => {
      count++;
      if (count > 1) return io.exitNow(FORCED);
      onFirst(signal);
      daemon.stop().then(resolve, reject);
    });
  });
  stopped.catch(() => {}); // told where it is awaited
  return { stopped, release: () => release() };
}

function announce(
  context: Context,
  config: Config,
  ready: Awaited<ReturnType<RunningDaemon['start']>>,
): void {
  if (context.json) {
    const { pid, nats, http, agents, store } = ready;
    context.value({ event: 'ready', pid, nats, http, agents, store });
  } else {
    context.line(
      renderBanner(
        { ...ready, data: config.daemon.data, invocation: context.io.invocation },
        context.palette,
      ),
    );
  }
}
