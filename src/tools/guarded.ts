import type { ToolOutcome } from '../agents/tool-port.ts';
import { linkedAbort, messageOf } from '../kernel/index.ts';

/**
 * One run of a tool, whatever the tool does.
 *
 * GUARDED-1 It ends: at its deadline or at an abort the tool is told, and `graceMs` later it is no longer waited for.
 * GUARDED-2 It never rejects: what is thrown, at once or later, is a failure that the model reads.
 * GUARDED-3 It has an outcome: nothing, or something else, is a failure too.
 * GUARDED-4 It leaves no timer and no listener behind.
 */

/** For a tool to say how it ended, once it was told to; longer than a process group is given to end. */
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
  const told = linkedAbort(signal);
  let expired = false;
  let silence: NodeJS.Timeout | undefined;
  const deadline = setTimeout(() => {
    expired = true;
    told.abort(new Error('the time for this call is over'));
  }, options.timeoutMs);
  const givenUp = new Promise<ToolOutcome>((resolve) => {
    const wait = () => {
      silence = setTimeout(() => resolve({ kind: 'aborted' }), options.graceMs ?? GRACE_MS);
    };
    told.signal.addEventListener('abort', wait, { once: true });
  });
  try {
    const outcome = await Promise.race([outcomeOf(work, told.signal, options.name), givenUp]); // GUARDED-1
    if (outcome.kind !== 'aborted' || !expired) return outcome;
    return failed('TIMEOUT', `${options.name} did not end within ${options.timeoutMs / 1_000} seconds`);
  } finally {
    clearTimeout(deadline); // GUARDED-4
    clearTimeout(silence);
    told.unlink();
  }
}

/** GUARDED-2, GUARDED-3 */
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

/** How long a call of a tool may take in all, whoever runs it. */
export const LONGEST_CALL_MS = 900_000;
