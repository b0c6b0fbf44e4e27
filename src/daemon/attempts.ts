import type { IngressDelivery, StreamPosition } from '../bus/index.ts';
import type { IngressAttempts } from '../persistence/index.ts';

/**
 * How often the daemon has begun to decide on a post without coming to an end: a post that ends the daemon each time
 * must not end it for ever.
 *
 * A1 A post that came while this process reads is decided on without a mark: that costs nothing. One that was in the
 *    stream before may have ended the last process, so it counts as tried once, and each further attempt is durable
 *    before it begins. Such marks share a write.
 * A2 A post with a mark is a suspect: it is tried alone, and later each time, so that its end counts against no other.
 * A3 What the daemon survived, it forgets, unless it failed to decide: a full disk is not the post's fault.
 */

/** From this many attempts on it is not tried again. */
export const MOST_ATTEMPTS = 5;
/** A suspect waits so long for each attempt it has had, in milliseconds: others are served meanwhile. */
const PATIENCE_MS = 1_000;

type Place = Pick<IngressDelivery, 'position' | 'isOld'>;

export class Attempts {
  private readonly save: (attempts: IngressAttempts) => Promise<void>;
  private stream: string;
  /** By sequence: attempts that began, the one under way included. */
  private readonly begun = new Map<number, number>();
  private alone: Promise<unknown> = Promise.resolve();
  private saving: Promise<unknown> | null = null;

  constructor(stored: IngressAttempts | null, save: (attempts: IngressAttempts) => Promise<void>) {
    this.save = save;
    this.stream = stored?.stream ?? '';
    for (const { sequence, begun } of stored?.posts ?? []) this.begun.set(sequence, begun);
  }

  /** Attempts before this one that came to no end. */
  before({ position, isOld }: Place): number {
    const marked = position.stream === this.stream ? this.begun.get(position.sequence) : undefined;
    return marked ?? (isOld ? 1 : 0);
  }

  /** A2 */
  isSuspect(place: Place): boolean {
    return this.before(place) > 1;
  }

  /**
   * Marks an attempt, the `begun`th. Resolves with null once that is durable, else with the reason: then it must not begin.
   * Everything that waits for marks waits for the same promise, so that none overtakes another.
   */
  begin(place: Place, begun: number): Promise<unknown> {
    const { stream, sequence } = place.position;
    const before = this.before(place);
    if (this.stream !== stream) this.begun.clear();
    this.stream = stream;
    this.begun.set(sequence, begun);
    const saved = this.save(this.document()).then(
      () => null,
      (error: unknown) => {
        if (this.begun.get(sequence) === begun) this.restore(sequence, before);
        return error ?? new Error('not saved');
      },
    );
    this.saving = saved;
    void saved.then(() => {
      if (this.saving === saved) this.saving = null;
    });
    return saved;
  }

  /** Marks on their way to the disk: whoever comes behind them waits for them too. */
  get pending(): Promise<unknown> | null {
    return this.saving;
  }

  /** A2: behind the other suspects. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.alone.then(work);
    this.alone = mine.catch(() => undefined);
    return mine;
  }

  patience(place: Place): number {
    return (this.before(place) - 1) * PATIENCE_MS;
  }

  /** A3 */
  survived({ position }: Place): void {
    if (position.stream === this.stream) this.begun.delete(position.sequence);
  }

  /** What is settled does not come again. */
  settledUpTo(position: StreamPosition): void {
    if (position.stream !== this.stream) return;
    for (const sequence of this.begun.keys()) if (sequence <= position.sequence) this.begun.delete(sequence);
  }

  private restore(sequence: number, before: number): void {
    if (before > 1) this.begun.set(sequence, before);
    else this.begun.delete(sequence);
  }

  private document(): IngressAttempts {
    const posts = [...this.begun].map(([sequence, begun]) => ({ sequence, begun }));
    return { stream: this.stream, posts };
  }
}
