import type { WireForm } from '../../src/agents/index.ts';
import { EMPTY_STATE, type Entry, evolve, type FilePart, partsOf } from '../../src/conversation/index.ts';
import { rowOf } from '../../src/daemon/conversations/projections.ts';
import { ConversationWorker } from '../../src/daemon/conversations/worker/worker.ts';
import type { Runtime } from '../../src/daemon/runtime.ts';
import type { ConversationStore } from '../../src/persistence/index.ts';
import { exampleHistory, examplePost } from './history.ts';
import { createRuntime } from './runtime.ts';

/** Conversations at work on one store: whole turns, from the post to the durable end. */
export interface Workplace {
  readonly runtime: Runtime;
  /** A conversation whose log already holds `length` entries, opened. */
  open(
    conversation: string,
    length: number,
    withFiles?: (entry: Entry) => Entry,
  ): Promise<ConversationWorker>;
  /** Posts and waits until the turn's end is durable; answers the batches that were appended, in order. */
  turn(worker: ConversationWorker, ...files: readonly FilePart[]): Promise<readonly (readonly Entry[])[]>;
}

export function openWorkplace(store: ConversationStore, form?: Partial<WireForm>): Workplace {
  const listeners = new Map<string, (entries: readonly Entry[]) => void>();
  const tell = (id: string, entries: readonly Entry[]) => listeners.get(id)?.(entries);
  const runtime = createRuntime(store, tell, form);
  let posts = 10_000_000; // beyond the ids of any history
  return {
    runtime,
    async open(conversation, length, withFiles = (entry) => entry) {
      const history = exampleHistory(length, runtime.team.rules).map(withFiles);
      await writeHistory(store, conversation, history);
      return ConversationWorker.open(conversation, runtime, false);
    },
    async turn(worker, ...files) {
      const batches: (readonly Entry[])[] = [];
      posts += 10; // none of them goes to another agent by name
      const post = examplePost(posts);
      const parts = partsOf(post.content, files);
      const command = { type: 'post', post: { ...post, parts }, ingressSequence: posts } as const;
      await new Promise<void>((resolve, reject) => {
        listeners.set(worker.id, (entries) => {
          batches.push(entries);
          if (entries.some(({ type }) => type === 'turn-ended')) resolve();
        });
        worker.submit(command).catch(reject);
      });
      return batches;
    },
  };
}

export async function writeHistory(
  store: ConversationStore,
  conversation: string,
  entries: readonly Entry[],
): Promise<void> {
  const { log } = await store.open(conversation);
  // In groups: one write of everything would be one batch, which no daemon makes.
  const appended: Promise<unknown>[] = [];
  for (let at = 0; at < entries.length; at += 2) appended.push(log.append(at, entries.slice(at, at + 2)));
  await Promise.all(appended);
  await log.close();
}

/** So many at once. */
const GROUP = 50;

/** Conversations at rest, as a daemon leaves them: each log complete, each row with all fields, no mark. */
export async function writeAtRest(store: ConversationStore, count: number, length: number): Promise<void> {
  const entries = exampleHistory(length, createRuntime(store).team.rules);
  const state = entries.reduce(evolve, EMPTY_STATE);
  const ids = Array.from({ length: count }, (_, number) => `at-rest-${String(number).padStart(5, '0')}`);
  for (let at = 0; at < count; at += GROUP) {
    await Promise.all(
      ids.slice(at, at + GROUP).map(async (id) => {
        await writeHistory(store, id, entries);
        await store.saveRow({ ...rowOf(id, state, entries), title: `Conversation ${id}` });
      }),
    );
  }
  await store.initialiseMarks();
}
