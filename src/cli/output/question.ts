import { createInterface } from 'node:readline/promises';
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
