import { Backlog, type PostPlace } from './backlog.ts';

/**
 * Lets posts through as there is room for them, so that a flood of one publisher keeps no other waiting.
 *
 * FAIR-QUEUE-1 Those of one publisher, and those into one conversation, come through in the order in which they were read.
 * FAIR-QUEUE-2 At most `maxInFlight` posts are in flight, `perPublisher` of one publisher, into `conversationsPerPublisher`
 *    conversations: each conversation that is opened costs all others time. While they hold `maxBytes`, no more.
 * FAIR-QUEUE-3 Of what waits the places are kept, for `maxParked` posts, and the messages of the first that come to `maxKept` bytes
 *    with what it costs to hold them; the others are read again when it is their turn.
 * FAIR-QUEUE-4 Each is settled once: by its handler, or because it is no more.
 */
export interface FairQueueLimits {
  readonly maxInFlight: number;
  readonly perPublisher: number;
  readonly conversationsPerPublisher: number;
  readonly maxBytes: number;
  readonly maxParked: number;
  readonly maxKept: number;
}

/** What a message takes in memory besides its body, about. Bytes. */
const HOLDING_BYTES = 512;

export interface QueuedPost<M> extends PostPlace {
  readonly message: M;
}

export interface FairQueueWork<M> {
  /** Deals with a post; false: it stays unsettled. Never rejects. */
  readonly handle: (parcel: QueuedPost<M>) => Promise<boolean>;
  /** The same message, in memory of its own: what it was read from may be much larger. */
  readonly keep: (message: M) => M;
  /** Reads a post again; null: it is no more. Rejects when it cannot be read now and never will be asked for again. */
  readonly fetch: (place: PostPlace) => Promise<QueuedPost<M> | null>;
  readonly settled: (sequence: number) => void;
}

export class FairQueue<M> {
  readonly #limits: FairQueueLimits;
  readonly #work: FairQueueWork<M>;
  readonly #parked = new Backlog<PostPlace | QueuedPost<M>>();
  #kept = 0;
  readonly #ofPublisher = new Map<string, number>();
  /** In flight, by publisher: how many posts into each conversation. */
  readonly #conversations = new Map<string, Map<string, number>>();
  #inFlight = 0;
  #bytes = 0;
  /** How many of a publisher, and into a conversation, are on `#passing`: another of either goes behind them (FAIR-QUEUE-1). */
  readonly #queued = new Map<string, number>();
  #passing: Promise<void> = Promise.resolve();
  #isClosed = false;
  #onChange: (() => void) | null = null;

  constructor(limits: FairQueueLimits, work: FairQueueWork<M>) {
    this.#limits = limits;
    this.#work = work;
  }

  /** How many more may be offered (FAIR-QUEUE-3). */
  get room(): number {
    return this.#limits.maxParked - this.#parked.size;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** A post that was read, in the order of their sequences; of a mere place the message is still to be read. */
  offer(post: PostPlace | QueuedPost<M>): void {
    if (this.#isClosed) return;
    if (this.#parked.holdsBefore(post) || !this.#admits(post)) {
      this.#park(post);
      return;
    }
    this.#enter(post);
    if (!('message' in post)) this.#pass(post, this.#work.fetch(post));
    else if (!lanesOf(post).some((lane) => this.#queued.has(lane))) this.#deliver(post);
    else this.#pass(post, Promise.resolve(post));
  }

  /** Lets nothing more through: what waits is read again after the next start. */
  close(): void {
    this.#isClosed = true;
    this.#onChange?.();
  }

  /** Resolves at the next change of what is in flight, or when it is closed. */
  change(): Promise<void> {
    return new Promise((resolve) => {
      this.#onChange = () => {
        this.#onChange = null;
        resolve();
      };
    });
  }

  /** FAIR-QUEUE-3 */
  #park(post: PostPlace | QueuedPost<M>): void {
    if (!('message' in post)) {
      this.#parked.add(post);
      return;
    }
    const { message, ...place } = post;
    const bytes = place.bytes + HOLDING_BYTES;
    const isKept = this.#kept + bytes <= this.#limits.maxKept;
    if (isKept) this.#kept += bytes;
    this.#parked.add(isKept ? { ...place, message: this.#work.keep(message) } : place);
  }

  /** FAIR-QUEUE-3 */
  async #unpark(place: PostPlace | QueuedPost<M>): Promise<QueuedPost<M> | null> {
    if (!('message' in place)) return this.#work.fetch(place);
    this.#kept -= place.bytes + HOLDING_BYTES;
    return place;
  }

  /** FAIR-QUEUE-2 */
  #admits({ publisher, conversation }: PostPlace): boolean {
    const { maxInFlight, perPublisher, conversationsPerPublisher, maxBytes } = this.#limits;
    const open = this.#conversations.get(publisher);
    return (
      this.#inFlight < maxInFlight &&
      this.#bytes < maxBytes &&
      (this.#ofPublisher.get(publisher) ?? 0) < perPublisher &&
      (open === undefined || open.size < conversationsPerPublisher || open.has(conversation))
    );
  }

  #enter({ publisher, conversation, bytes }: PostPlace): void {
    this.#inFlight += 1;
    this.#bytes += bytes;
    count(this.#ofPublisher, publisher, 1);
    const open = this.#conversations.get(publisher) ?? new Map<string, number>();
    this.#conversations.set(publisher, open);
    count(open, conversation, 1);
  }

  #leave({ publisher, conversation, bytes }: PostPlace): void {
    this.#inFlight -= 1;
    this.#bytes -= bytes;
    count(this.#ofPublisher, publisher, -1);
    const open = this.#conversations.get(publisher);
    if (open) count(open, conversation, -1);
    if (open?.size === 0) this.#conversations.delete(publisher);
    this.#pump();
    this.#onChange?.();
  }

  #deliver(parcel: QueuedPost<M>): void {
    void this.#work.handle(parcel).then((settled) => {
      if (settled) this.#work.settled(parcel.sequence); // FAIR-QUEUE-4
      this.#leave(parcel);
    });
  }

  /** Behind what passes already (FAIR-QUEUE-1). */
  #pass(place: PostPlace, arriving: Promise<QueuedPost<M> | null>): void {
    for (const lane of lanesOf(place)) count(this.#queued, lane, 1);
    const arrived = arriving.catch(() => 'lost' as const);
    this.#passing = this.#passing.then(async () => {
      const parcel = await arrived;
      for (const lane of lanesOf(place)) count(this.#queued, lane, -1);
      if (parcel === null) this.#work.settled(place.sequence); // FAIR-QUEUE-4
      if (parcel === null || parcel === 'lost' || this.#isClosed) this.#leave(place);
      else this.#deliver(parcel);
    });
  }

  #pump(): void {
    while (!this.#isClosed && this.#inFlight < this.#limits.maxInFlight) {
      const place = this.#parked.take((post) => this.#admits(post));
      if (!place) return;
      this.#enter(place);
      this.#pass(place, this.#unpark(place));
    }
  }
}

function lanesOf({ publisher, conversation }: PostPlace): readonly string[] {
  return [`by ${publisher}`, `into ${conversation}`];
}

function count(counts: Map<string, number>, name: string, by: 1 | -1): void {
  const left = (counts.get(name) ?? 0) + by;
  if (left > 0) counts.set(name, left);
  else counts.delete(name);
}
