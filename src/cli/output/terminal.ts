import { createInterface } from 'node:readline/promises';
import yoctoSpinner from 'yocto-spinner';
import { ParleyError } from '../../client/index.ts';
import type { Context } from '../context.ts';
import type { Io } from '../io.ts';

/** Asks on a terminal. Returns the answer without spaces around it; null after Ctrl-C or Ctrl-D. */
export async function ask(io: Io, output: Io['stdout'], question: string): Promise<string | null> {
  const asking = createInterface({ input: io.stdin, output });
  try {
    // An answer right before the end of the input counts.
    const closed = new Promise<null>((resolve) => asking.once('close', () => setImmediate(resolve, null)));
    const answer = await Promise.race([asking.question(question).catch(() => null), closed]);
    return answer?.trim() ?? null;
  } finally {
    asking.close();
  }
}

/** Prints the lines and asks; without a terminal it throws `USAGE` with what must be said in `refused`. */
export async function confirms(
  { io, json, line }: Context,
  question: string,
  lines: readonly string[],
  refused: { readonly message: string; readonly hint: string },
): Promise<boolean> {
  if (json || !io.stdin.isTTY || !io.stdout.isTTY)
    throw new ParleyError('USAGE', refused.message, { hint: refused.hint });
  for (const one of lines) line(one);
  return /^y(es)?$/i.test((await ask(io, io.stdout, `${question} [y/N] `)) ?? '');
}

/** Runs the work with a signal that aborts when a signal of the system asks the command to end. */
export async function untilSignal<T>(
  { onSignal }: Io,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const release = onSignal(() => abort.abort());
  try {
    return await work(abort.signal);
  } finally {
    release();
  }
}

/** An animation while a person waits. Does nothing without a terminal. */
export interface Spinner {
  show(text: string): void;
  hide(): void;
}

export function createSpinner(io: Io): Spinner {
  if (io.stderr.isTTY !== true || io.env.TERM === 'dumb') return { show: () => {}, hide: () => {} };
  // The command handles signals: the spinner must not end the process.
  const spinner = yoctoSpinner({ stream: io.stderr, handleSignals: false });
  return {
    show(text) {
      spinner.text = text;
      if (!spinner.isSpinning) spinner.start();
    },
    hide() {
      if (spinner.isSpinning) spinner.stop();
    },
  };
}
