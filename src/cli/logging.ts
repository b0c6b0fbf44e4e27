import type { Writable } from 'node:stream';
import { ParleyError } from '../client/index.ts';

/**
 * The daemon's log: on stderr, readable on a terminal, one JSON object a line everywhere else. Its packages are loaded by
 * who logs; most commands do not.
 */

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';
/** The daemon's port for its log, with `debug` beside it. */
export type Log = Readonly<Record<LogLevel, (fields: object, message: string) => void>>;

export interface LoggingOptions {
  readonly stream: Writable;
  /** For people; else JSON. */
  readonly readable: boolean;
  readonly colour: boolean;
  readonly level: LogLevel;
}

export async function createLog({ stream, readable, colour, level }: LoggingOptions): Promise<Log> {
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
  // In this process and at once, never in a worker: what was logged before a crash must be there.
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
