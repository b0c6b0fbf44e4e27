import { ParleyError } from '../../client/index.ts';
import { escapeHidden, type HideValues, hideInside } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import { wantsColour } from '../render/text.ts';

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
