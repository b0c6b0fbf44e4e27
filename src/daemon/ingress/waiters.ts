import type { Delivery } from '../../bus/index.ts';
import { ignoredOf, publisherOfPost, type Reply } from '../../conversation/index.ts';
import { sleep } from '../../kernel/index.ts';
import type { PostName, Workers } from '../conversations/workers.ts';

/** The outcome of a post. `letter`: the sequence of its dead letter, if it was refused. */
export type Outcome = Reply & { readonly letter?: number };

type PlaceOfPost = Pick<Delivery, 'publisher' | 'conversation'> & {
  readonly position: { readonly sequence: number };
};

export const never = (): Promise<never> => new Promise(() => undefined);

/** First and last sequence. */
type Run = readonly [number, number];

/** Between two reads of the log for a post whose outcome was not reported. */
const LOOK_MS = 2_000;

/** The report of another daemon may be lost, so the log is read: it contains accepted posts. */
export async function lookUp(
  post: PostName & { readonly sequence: number },
  isWaiting: () => boolean,
  workers: Workers,
  shutdown: AbortSignal,
): Promise<Outcome> {
  for (;;) {
    await sleep(LOOK_MS, shutdown);
    if (!isWaiting() || shutdown.aborted) return never();
    const entries = await workers.existing(post.conversation).then(
      (worker) => worker.entries(),
      () => [],
    );
    const entry = entries.find((one) => one.id === post.id && publisherOfPost(one) === post.publisher);
    if (entry?.type !== 'message') continue;
    const { id, index, to: agents = [], ingressSequence } = entry;
    const duplicate = ingressSequence !== post.sequence;
    return { kind: 'posted', id, index, duplicate, agents, ...ignoredOf(entry) };
  }
}

/** One caller of the request API. Its post may be delivered before the stream acknowledged it. */
class Waiter {
  readonly outcome: Promise<Outcome>;
  #resolve: (outcome: Outcome) => void = () => undefined;
  #sequence: number | null = null;
  readonly #early: { readonly run: Run; readonly outcome: Outcome }[] = [];

  constructor() {
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** The stream has the post with this sequence. */
  posted(sequence: number): void {
    this.#sequence = sequence;
    for (const { run, outcome } of [...this.#early].reverse()) this.decided(run, outcome); // the newest counts
  }

  /** The posts of its publisher in this run have this outcome. */
  decided(run: Run, outcome: Outcome): void {
    if (this.#sequence === null) this.#early.push({ run, outcome });
    else if (run[0] <= this.#sequence && this.#sequence <= run[1]) this.#resolve(outcome);
  }
}

/** The callers that wait for the outcome of their post. */
export class Waiters {
  readonly #byPost = new Map<string, Waiter[]>();

  /** Resolves with the outcome of the post that `post` publishes. */
  async waitFor(
    [publisher, conversation, id]: readonly [string, string, string],
    post: () => Promise<{ readonly sequence: number }>,
    /** Another source of the outcome, once the sequence is known. */
    lookUp: (sequence: number, isWaiting: () => boolean) => Promise<Outcome> = never,
  ): Promise<Outcome> {
    const key = keyOf(publisher, conversation, id);
    const waiter = new Waiter();
    this.#byPost.set(key, [...(this.#byPost.get(key) ?? []), waiter]);
    try {
      const { sequence } = await post();
      waiter.posted(sequence);
      const isWaiting = () => this.#byPost.get(key)?.includes(waiter) === true;
      return await Promise.race([waiter.outcome, lookUp(sequence, isWaiting)]);
    } finally {
      const left = (this.#byPost.get(key) ?? []).filter((other) => other !== waiter);
      if (left.length > 0) this.#byPost.set(key, left);
      else this.#byPost.delete(key);
    }
  }

  /** For posts that were refused together. */
  tellAll(publisher: string, runs: readonly Run[], outcome: Outcome): void {
    for (const [key, waiters] of this.#byPost) {
      if ((JSON.parse(key) as string[])[0] !== publisher) continue;
      for (const waiter of waiters) for (const run of runs) waiter.decided(run, outcome);
    }
  }

  /** For the posts of a conversation that wait behind this one, of any publisher. */
  tellBehind({ conversation, position }: Omit<PlaceOfPost, 'publisher'>, outcome: Outcome): void {
    for (const [key, waiters] of this.#byPost) {
      if ((JSON.parse(key) as string[])[1] !== conversation) continue;
      for (const waiter of waiters)
        waiter.decided([position.sequence + 1, Number.POSITIVE_INFINITY], outcome);
    }
  }

  tell({ publisher, conversation, position }: PlaceOfPost, id: string, outcome: Outcome): void {
    for (const waiter of this.#byPost.get(keyOf(publisher, conversation, id)) ?? []) {
      waiter.decided([position.sequence, position.sequence], outcome);
    }
  }
}

function keyOf(publisher: string, conversation: string, id: string): string {
  return JSON.stringify([publisher, conversation, id]);
}
