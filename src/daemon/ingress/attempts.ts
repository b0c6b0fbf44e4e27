import type { StreamPosition } from '../../bus/index.ts';
import { coalesce } from '../../kernel/index.ts';
import type { ConversationStore, IngressAttempts } from '../../persistence/index.ts';
import { dueAfter, type Suspect, untilDue } from './fatal-posts.ts';

/**
 * How often the daemon ended, or failed, while it decided on a post (`fatal-posts.ts`).
 *
 * ATTEMPTS-1 Before it decides on posts a note is kept that says so, and after it another: nothing else happens in between. A
 *    daemon that finds such a note of the last one counts an end against those posts, and against no others. So one that
 *    is stopped, or killed at any other moment, counts against nobody.
 * ATTEMPTS-2 A post with a count is a suspect: it is tried alone, so that its end counts against no other; one after the other, as
 *    their time comes (FATAL-POSTS-2). Many suspects wait no longer than one: a daemon that does not live long gets through them.
 * ATTEMPTS-3 What the daemon survived, it forgets, unless it failed to decide: a full disk is not the post's fault. The next daemon
 *    does not hear of it either, though the post may come again: that is saved, and costs posts without a count nothing.
 * ATTEMPTS-4 What was settled otherwise, as a post that was given up, is forgotten a while later: if it comes again, since the position
 *    was not saved, it is given up again.
 */

/** ATTEMPTS-4: by then the position is saved. */
const SETTLED_MS = 10_000;

type Store = Pick<
  ConversationStore,
  'ingressAttempts' | 'saveIngressAttempts' | 'lastDecision' | 'noteDecision'
>;

export class Attempts {
  private readonly store: Store;
  /** The life of the ingress stream that posts come from. */
  private stream: string;
  /** By sequence: attempts that came to no end. */
  private readonly counts: Map<number, number>;
  private isNoted = false;
  private alone: Promise<unknown> = Promise.resolve();
  /** ATTEMPTS-4: everything up to here was settled by then, as `performance.now()` counts. */
  private settled = { sequence: 0, at: Number.NEGATIVE_INFINITY };
  private readonly save: () => Promise<void>;

  /** For tests; a daemon's begin with `open`. */
  constructor(store: Store, stored: IngressAttempts | null) {
    this.store = store;
    this.stream = stored?.stream ?? '';
    this.counts = new Map(stored?.posts.map(({ sequence, begun }) => [sequence, begun]));
    this.save = coalesce(() => this.write());
  }

  /** ATTEMPTS-1 */
  static async open(store: Store): Promise<Attempts> {
    const attempts = new Attempts(store, await store.ingressAttempts());
    const last = await store.lastDecision();
    if (last === null) return attempts;
    attempts.readFrom(last.stream);
    for (const sequence of last.sequences) attempts.count(sequence);
    await attempts.save();
    store.noteDecision(null); // it is counted
    return attempts;
  }

  /** A stream that was made anew has other posts. */
  readFrom(stream: string): void {
    if (this.stream === stream) return;
    this.stream = stream;
    this.counts.clear();
    this.settled = { sequence: 0, at: Number.NEGATIVE_INFINITY };
  }

  /** Attempts that came to no end. */
  before({ stream, sequence }: StreamPosition): number {
    return (stream === this.stream && this.counts.get(sequence)) || 0;
  }

  /** ATTEMPTS-1: until `decided`, and nothing may be waited for in between. */
  deciding(sequences: readonly number[]): void {
    this.isNoted = sequences.length > 0;
    if (this.isNoted) this.store.noteDecision({ stream: this.stream, sequences });
  }

  decided(): void {
    if (this.isNoted) this.store.noteDecision(null);
    this.isNoted = false;
  }

  /** The daemon could not decide on it, and knows. */
  async failed({ stream, sequence }: StreamPosition): Promise<void> {
    if (stream !== this.stream) return;
    this.count(sequence);
    await this.save();
  }

  /** Null: nothing is known against it. To be asked when it comes: its time runs from then on. */
  suspect(position: StreamPosition): Suspect | null {
    const before = () => this.before(position);
    if (before() === 0) return null;
    const due = dueAfter(before());
    return {
      before,
      again: async (attempt, stopping) => {
        await untilDue(due, stopping);
        await this.inTurn(async () => {
          await untilDue(due, stopping); // the daemon may have been stopped meanwhile
          await attempt(); // whoever decides on it keeps the note (ATTEMPTS-1)
        });
      },
      givenUp: () => undefined, // it is forgotten when it is settled
    };
  }

  /** ATTEMPTS-3 */
  survived({ stream, sequence }: StreamPosition): void {
    if (stream === this.stream && this.counts.delete(sequence)) void this.save();
  }

  /** ATTEMPTS-4 */
  settledUpTo({ stream, sequence }: StreamPosition): void {
    const at = performance.now();
    if (stream !== this.stream || at < this.settled.at + SETTLED_MS) return;
    const old = [...this.counts.keys()].filter((one) => one <= this.settled.sequence);
    for (const one of old) this.counts.delete(one);
    if (old.length > 0) void this.save();
    this.settled = { sequence, at };
  }

  /** ATTEMPTS-2: behind the suspects whose time came before. */
  private inTurn(work: () => Promise<void>): Promise<void> {
    const mine = this.alone.then(work);
    this.alone = mine.catch(() => undefined);
    return mine;
  }

  private count(sequence: number): void {
    this.counts.set(sequence, (this.counts.get(sequence) ?? 0) + 1);
  }

  private async write(): Promise<void> {
    const posts = [...this.counts].map(([sequence, begun]) => ({ sequence, begun }));
    // On a full disk this process alone knows the counts; no post waits for that.
    await this.store.saveIngressAttempts({ stream: this.stream, posts }).catch(() => undefined);
  }
}
