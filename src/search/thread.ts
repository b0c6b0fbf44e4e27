import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../kernel/index.ts';
import { openSqliteIndex, type SqliteIndex } from './sqlite-index.ts';

/** The worker thread of the index. It executes calls in order, and answers each one. */

export interface Call {
  readonly id: number;
  readonly name: keyof SqliteIndex;
  readonly argument: unknown;
}

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

const { path }: { path: string | null } = workerData;
let index: SqliteIndex | null = null;

parentPort?.on('message', ({ id, name, argument }: Call) => {
  try {
    index ??= openSqliteIndex(path);
    const run = index[name] as (this: SqliteIndex, argument: unknown) => unknown;
    parentPort?.postMessage({ id, value: run.call(index, argument) } satisfies Answer);
  } catch (error) {
    parentPort?.postMessage({ id, error: messageOf(error) } satisfies Answer);
  }
});
