import type { ToolOutcome } from '../agents/tool-port.ts';
import { linkedAbort, messageOf } from '../kernel/index.ts';

/**
 * Runs a tool with a deadline and turns every failure into an outcome.
 *
 * GUARDED-1 The run ends: at its deadline or on abort the tool gets the signal; `graceMs` later the run stops waiting.
 * GUARDED-2 It never rejects: an error is a failure that the model reads.
 * GUARDED-3 A missing or malformed outcome is a failure.
 * GUARDED-4 It leaves no timer and no listener.
 */

/** For a tool to return after an abort; longer than the time to end a process group. */
const GRACE_MS = 5_000;

export interface GuardOptions {
  readonly name: string;
  readonly timeoutMs: number;
  readonly graceMs?: number;
}

type Work = (signal: AbortSignal) => Promise<ToolOutcome>;

export async function runGuarded(
  work: Work,
  signal: AbortSignal,
  options: GuardOptions,
): Promise<ToolOutcome> {
  if (signal.aborted) return { kind: 'aborted' };
  const inner = linkedAbort(signal);
  let expired = false;
  let graceTimer: NodeJS.Timeout | undefined;
  const deadline = setTimeout(() => {
    expired = true;
    inner.abort(new Error('the time for this call is over'));
  }, options.timeoutMs);
  const gaveUp = new Promise<ToolOutcome>((resolve) => {
    const wait = () => {
      graceTimer = setTimeout(() => resolve({ kind: 'aborted' }), options.graceMs ?? GRACE_MS);
    };
    inner.signal.addEventListener('abort', wait, { once: true });
  });
  try {
    const outcome = await Promise.race([outcomeOf(work, inner.signal, options.name), gaveUp]);
    if (outcome.kind !== 'aborted' || !expired) return outcome;
    return failed('TIMEOUT', `${options.name} did not end within ${options.timeoutMs / 1_000} seconds`);
  } finally {
    clearTimeout(deadline);
    clearTimeout(graceTimer);
    inner.unlink();
  }
}

async function outcomeOf(work: Work, signal: AbortSignal, name: string): Promise<ToolOutcome> {
  try {
    const outcome: unknown = await work(signal);
    return isOutcome(outcome) ? outcome : failed('NO_RESULT', `${name} ended without a result`);
  } catch (error) {
    return signal.aborted ? { kind: 'aborted' } : failed('TOOL_FAILED', `${name}: ${messageOf(error)}`);
  }
}

function isOutcome(value: unknown): value is ToolOutcome {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false;
  if (value.kind === 'completed') return 'content' in value && typeof value.content === 'string';
  if (value.kind !== 'failed') return value.kind === 'aborted';
  const { code, message } = value as Record<string, unknown>;
  return typeof code === 'string' && typeof message === 'string';
}

export function completed(content: string): ToolOutcome {
  return { kind: 'completed', content };
}

export function failed(code: string, message: string): ToolOutcome {
  return { kind: 'failed', code, message };
}

/** The total time of a tool call, for every kind of tool. */
export const LONGEST_CALL_MS = 900_000;

/** The logger that tools need; pino implements it. */
export interface ToolLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const SILENT: ToolLog = { warn: () => {}, error: () => {} };
