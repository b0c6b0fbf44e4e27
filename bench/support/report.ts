import { median } from '../samples.ts';

/** Each benchmark prints one line of JSON per figure. `wanted` is the target of `ratio`, if it has one. */
export function report(bench: string, figures: Readonly<Record<string, number | string | boolean>>): void {
  console.log(JSON.stringify({ bench, ...figures }));
}

export function rounded(value: number, digits = 3): number {
  return Number(value.toFixed(digits));
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

export interface Contestants {
  readonly [name: string]: (round: number) => Promise<number>;
}

/**
 * Lets the contestants run in turns, each round beginning with the next one, so that the machine's moods hit them
 * alike. Answers what each of them measured, round by round; the first `warmUp` rounds do not count.
 */
export async function interleave<T extends Contestants>(
  contestants: T,
  rounds: number,
  warmUp: number,
): Promise<Record<keyof T, number[]>> {
  const names: (keyof T & string)[] = Object.keys(contestants);
  const measured = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<
    keyof T,
    number[]
  >;
  for (let round = 0; round < rounds + warmUp; round += 1) {
    for (let turn = 0; turn < names.length; turn += 1) {
      const name = names[(round + turn) % names.length];
      const value = await contestants[name!]!(round);
      if (round >= warmUp) measured[name!].push(value);
    }
  }
  return measured;
}

/** Median of the ratios within a round: two neighbours in time share the machine's mood. */
export function ratioOf(values: readonly number[], others: readonly number[]): number {
  return rounded(median(values.map((value, round) => value / others[round]!)));
}

export { median };
