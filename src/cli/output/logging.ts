import type { Writable } from 'node:stream';
import { ParleyError } from '../../client/index.ts';
import { escapeHidden, type HideValues, hideInside } from '../../kernel/index.ts';

/** The daemon's log on stderr: readable on a terminal, without control characters; otherwise one JSON object per line. Loads pino on demand. */

type LogLevel = 'debug' | 'info' | 'warn' | 'error';
/** The daemon's log port, with `debug`. */
export type Log = Readonly<Record<LogLevel, (fields: object, message: string) => void>>;

export interface LoggingOptions {
  readonly stream: Writable;
  /** For people; otherwise JSON. */
  readonly readable: boolean;
  readonly colour: boolean;
  readonly level: LogLevel;
  /** Hides secret values in what is logged. */
  readonly hide?: HideValues;
}

export async function createLog(options: LoggingOptions): Promise<Log> {
  const log = await openLog(options);
  const { hide: hideSecrets = (text) => text, readable } = options;
  // pino-pretty prints stacks as they are, with control characters in what a tool or a server said.
  const hide: HideValues = readable ? (text) => escapeHidden(hideSecrets(text)) : hideSecrets;
  const hiding = (level: LogLevel) => (fields: object, message: string) => {
    const shown = Object.entries(fields).map(([key, value]) => [key, hideInside(hide, describe(value))]);
    log[level](Object.fromEntries(shown), hide(message));
  };
  return { debug: hiding('debug'), info: hiding('info'), warn: hiding('warn'), error: hiding('error') };
}

async function openLog({ stream, readable, colour, level }: LoggingOptions): Promise<Log> {
  const { pino } = await import('pino');
  const options = {
    level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: describe },
  };
  if (!readable) {
    const log: Log = pino(options, stream);
    return log;
  }
  const { default: pretty } = await import('pino-pretty');
  // Synchronous and not in a worker, so that lines before a crash are written.
  const lines = pretty({ destination: stream, colorize: colour, translateTime: 'SYS:HH:MM:ss', sync: true });
  const log: Log = pino(options, lines);
  return log;
}

/** An error as an object: JSON alone would show it as `{}`. */
function describe(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { message, stack } = error;
  return error instanceof ParleyError
    ? { code: error.code, message, hint: error.hint, stack }
    : { message, stack };
}
