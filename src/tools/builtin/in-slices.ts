import { setImmediate as nextTurnOfTheLoop } from 'node:timers/promises';

/** How long work may keep everybody else from running, if its steps are short. */
const SLICE_MS = 5;

/** Runs work that comes in steps to its end, and lets others run in between. Throws when the signal aborts. */
export async function inSlices<T>(work: Generator<void, T>, signal: AbortSignal): Promise<T> {
  let since = performance.now();
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) return step.value;
    if (performance.now() - since < SLICE_MS) continue;
    await nextTurnOfTheLoop();
    signal.throwIfAborted();
    since = performance.now();
  }
}
