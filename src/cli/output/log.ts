import { ParleyError } from '../../client/index.ts';
import type { TelemetryEvent } from '../../daemon/index.ts';
import { escapeHidden, type HideValues, hideInside, sleep } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import type { Io } from '../io.ts';
import { wantsColour } from '../render/text.ts';

/**
 * Telemetry on stdout: one JSON object per line, after the ready message of the daemon.
 *
 * CLI-TELEMETRY-1 A slow or absent reader neither blocks the daemon nor fills its memory: events beyond `MAX_WAITING` are
 *    dropped and counted.
 * CLI-TELEMETRY-2 A closed stdout ends the telemetry, not the daemon.
 */

/** Characters: some thousand events. */
const MAX_WAITING = 1_048_576;
/** Milliseconds that `close` waits for a reader. */
const PATIENCE_MS = 1_000;

export function createConsoleTelemetry(io: Io, onLost: () => void) {
  const { stdout } = io;
  let held: string[] | null = [];
  let heldLength = 0;
  let omitted = 0;
  let isLost = false;
  io.onOutputLost(() => {
    isLost = true; // CLI-TELEMETRY-2
    onLost();
  });
  const write = (line: string) => {
    if (!held) {
      stdout.write(line);
      return;
    }
    held.push(line);
    heldLength += line.length;
  };
  return {
    emit(event: TelemetryEvent): void {
      if (isLost) return;
      if ((held ? heldLength : stdout.writableLength) >= MAX_WAITING) {
        omitted++; // CLI-TELEMETRY-1
        return;
      }
      if (omitted > 0) write(lineOf({ ts: event.ts, type: 'telemetry_omitted', events: omitted }));
      omitted = 0;
      write(lineOf(event));
    },
    /** Call it when the daemon is ready: writes the events so far, in order. */
    open(): void {
      const lines = held ?? [];
      held = null;
      if (!isLost && lines.length > 0) stdout.write(lines.join(''));
    },
    /** True: everything is written. False: the reader did not read it in time. */
    async close(): Promise<boolean> {
      if (isLost || stdout.writableLength === 0) return true;
      const written = new AbortController();
      stdout.write('', () => written.abort());
      await sleep(PATIENCE_MS, written.signal);
      return isLost || written.signal.aborted;
    },
  };
}

function lineOf(event: object): string {
  return `${escapeHidden(JSON.stringify(event))}\n`;
}

type LogLevel = 'debug' | 'info' | 'warn' | 'error';
/** The daemon's log port, with `debug`. */
type Log = Readonly<Record<LogLevel, (fields: object, message: string) => void>>;

/**
 * The daemon's log on stderr: readable on a terminal, without control characters; otherwise one JSON object per line. Loads pino
 * on demand. `hideSecrets`: hides secret values in what is logged.
 */
export async function createLog(
  {
    io,
    options: { verbose },
  }: { readonly io: Pick<Context['io'], 'stderr' | 'env'> } & Pick<Context, 'options'>,
  hideSecrets: HideValues = (text) => text,
): Promise<Log> {
  const { pino } = await import('pino');
  const { stderr, env } = io;
  const isReadable = stderr.isTTY === true;
  const settings = {
    level: verbose ? 'debug' : 'info',
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: describe },
  };
  const log: Log = pino(settings, isReadable ? await readable(stderr, wantsColour(stderr, env)) : stderr);
  // pino-pretty prints stacks as they are, with control characters in what a tool or a server said.
  const hide: HideValues = isReadable ? (text) => escapeHidden(hideSecrets(text)) : hideSecrets;
  const hiding = (level: LogLevel) => (fields: object, message: string) => {
    const shown = Object.entries(fields).map(([key, value]) => [key, hideInside(hide, describe(value))]);
    log[level](Object.fromEntries(shown), hide(message));
  };
  return { debug: hiding('debug'), info: hiding('info'), warn: hiding('warn'), error: hiding('error') };
}

async function readable(destination: Context['io']['stderr'], colorize: boolean) {
  const { default: pretty } = await import('pino-pretty');
  // Synchronous and not in a worker, so that lines before a crash are written.
  return pretty({ destination, colorize, translateTime: 'SYS:HH:MM:ss', sync: true });
}

/** An error as an object: JSON alone would show it as `{}`. */
function describe(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { message, stack } = error;
  return error instanceof ParleyError
    ? { code: error.code, message, hint: error.hint, stack }
    : { message, stack };
}
