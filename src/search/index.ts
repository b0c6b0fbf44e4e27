/**
 * The search index: a projection of the messages of all logs, which can be deleted at any time.
 *
 *   documents.ts     which entries are searched, and by which fields
 *   sqlite-index.ts  the index as an SQLite database; the only file that imports SQLite
 *   thread.ts        runs the index in a worker thread; here is its port for the daemon: one message for each call
 *
 * No access to logs or stores here: the daemon gives the entries.
 */
import { Worker } from 'node:worker_threads';
import { ParleyError } from '../kernel/index.ts';
import type { SqliteIndex } from './sqlite-index.ts';
import type { Answer, Call } from './thread.ts';

export {
  documentsOf,
  type IndexedConversation,
  type SearchDocument,
} from './documents.ts';

/** The index in a worker thread: no build or query of it delays a turn. */
export type SearchIndex = {
  readonly [Name in keyof SqliteIndex]: (
    ...given: Parameters<SqliteIndex[Name]>
  ) => Promise<ReturnType<SqliteIndex[Name]>>;
};

/** A thread reads TypeScript only through tsx, which a checkout has and the package does not need. */
const START_SOURCE = `
  import(require('node:worker_threads').workerData.tsx)
    .then(({ register }) => { register({ tsconfig: false }); return import(require('node:worker_threads').workerData.thread); });
`;

/** Rejected calls leave the index as it was. `path`: null keeps it in memory. */
export function openSearchIndex(path: string | null): SearchIndex {
  const worker = start(path);
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  let calls = 0;
  worker.on('message', (answer: Answer) => {
    const caller = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (waiting.size === 0) worker.unref();
    if ('error' in answer) caller?.reject(failed(answer.error));
    else caller?.resolve(answer.value);
  });
  let ended: string | null = null;
  const end = (reason: string) => {
    ended ??= reason;
    for (const { reject } of waiting.values()) reject(failed(reason));
    waiting.clear();
  };
  worker.on('error', (error) => end(error.message));
  worker.on('exit', () => end('its thread ended'));
  worker.unref();
  const call = <Value>(name: Call['name'], argument?: unknown) =>
    new Promise<Value>((resolve, reject) => {
      if (ended !== null) return reject(failed(ended)); // such a thread answers no call
      const id = ++calls;
      waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      worker.ref();
      worker.postMessage({ id, name, argument } satisfies Call);
    });
  return {
    conversations: () => call('conversations'),
    put: (batch) => call('put', batch),
    remove: (ids) => call('remove', ids),
    search: (query) => call('search', query),
    async close() {
      await call<void>('close').catch(() => undefined);
      await worker.terminate();
    },
  };
}

function start(path: string | null): Worker {
  if (!import.meta.url.endsWith('.ts'))
    return new Worker(new URL('./thread.cjs', import.meta.url), { workerData: { path } });
  const tsx = import.meta.resolve('tsx/esm/api');
  const thread = new URL('./thread.ts', import.meta.url).href;
  return new Worker(START_SOURCE, { eval: true, workerData: { path, tsx, thread } });
}

function failed(reason: string): ParleyError {
  return new ParleyError('SEARCH_INDEX_FAILED', `the search index failed: ${reason}`, {
    hint: 'search again: the index is built again from the logs',
  });
}
