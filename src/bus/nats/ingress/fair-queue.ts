import { tally } from '../../../kernel/index.ts';

/** A post without its message. */
export interface DeliveryRef {
  readonly sequence: number;
  readonly publisher: string;
  readonly conversation: string;
  /** The size of its body. */
  readonly bytes: number;
}

export interface FairQueueLimits {
  readonly maxInFlight: number;
  readonly perPublisher: number;
  readonly conversationsPerPublisher: number;
  readonly maxBytes: number;
  readonly maxParked: number;
  readonly maxKept: number;
}

/** Bytes of memory that a message needs besides its body, estimated. */
const OVERHEAD_BYTES = 512;

export interface QueuedDelivery<M> extends DeliveryRef {
  readonly message: M;
}

export interface FairQueueWork<M> {
  /** Delivers a post; false: it stays unsettled. Never rejects. */
  readonly deliver: (post: QueuedDelivery<M>) => Promise<boolean>;
  /** Copies the message, which may be a slice of a much larger buffer. */
  readonly keep: (message: M) => M;
  /** Reads a post again; null: the stream no longer has it. Rejects only when the reader stops. */
  readonly fetch: (ref: DeliveryRef) => Promise<QueuedDelivery<M> | null>;
  readonly settled: (sequence: number) => void;
}

/**
 * Delivers posts within limits, so that a flood from one publisher does not delay the others.
 *
 * FAIR-QUEUE-1 Posts of one publisher, and posts into one conversation, are delivered in the order in which they were read.
 * FAIR-QUEUE-2 At most `maxInFlight` delivered posts are unsettled, at most `perPublisher` of one publisher. While these hold
 *    `maxBytes`, no more are delivered.
 * FAIR-QUEUE-3 The backlog has references to at most `maxParked` posts and the messages of the first `maxKept` bytes, overhead
 *    included. The other messages are read again when they are due.
 * FAIR-QUEUE-4 Each post is settled once: by its handler, or because the stream no longer has it.
 */
export class FairQueue<M> {
  readonly #limits: FairQueueLimits;
  readonly #work: FairQueueWork<M>;
  readonly #backlog = new Backlog<DeliveryRef | QueuedDelivery<M>>();
  #keptBytes = 0;
  readonly #ofPublisher = new Map<string, number>();
  /** In flight, by publisher: how many posts into each conversation. */
  readonly #conversations = new Map<string, Map<string, number>>();
  #inFlight = 0;
  #bytes = 0;
  /** Posts in `#delivering` by publisher and by conversation: a new post of either follows them (FAIR-QUEUE-1). */
  readonly #queued = new Map<string, number>();
  #delivering: Promise<void> = Promise.resolve();
  #isClosed = false;
  #onChange: (() => void) | null = null;

  constructor(limits: FairQueueLimits, work: FairQueueWork<M>) {
    this.#limits = limits;
    this.#work = work;
  }

  /** How many more posts may be offered (FAIR-QUEUE-3). */
  get capacity(): number {
    return this.#limits.maxParked - this.#backlog.size;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Takes posts in the order of their sequences. The message of a bare reference is read later. */
  offer(post: DeliveryRef | QueuedDelivery<M>): void {
    if (this.#isClosed) return;
    if (this.#backlog.mustWait(post) || !this.#admits(post)) {
      this.#park(post);
      return;
    }
    this.#enter(post);
    if (!('message' in post)) this.#deliverInOrder(post, this.#work.fetch(post));
    else if (!lanesOf(post).some((lane) => this.#queued.has(lane))) this.#deliver(post);
    else this.#deliverInOrder(post, Promise.resolve(post));
  }

  /** Delivers no more posts: the backlog is read again after the next start. */
  close(): void {
    this.#isClosed = true;
    this.#onChange?.();
  }

  /** Resolves when `inFlight` changes or the queue is closed. */
  change(): Promise<void> {
    return new Promise((resolve) => {
      this.#onChange = () => {
        this.#onChange = null;
        resolve();
      };
    });
  }

  /** FAIR-QUEUE-3 */
  #park(post: DeliveryRef | QueuedDelivery<M>): void {
    if (!('message' in post)) {
      this.#backlog.add(post);
      return;
    }
    const { message, ...ref } = post;
    const bytes = ref.bytes + OVERHEAD_BYTES;
    const isKept = this.#keptBytes + bytes <= this.#limits.maxKept;
    if (isKept) this.#keptBytes += bytes;
    this.#backlog.add(isKept ? { ...ref, message: this.#work.keep(message) } : ref);
  }

  /** FAIR-QUEUE-3 */
  async #unpark(post: DeliveryRef | QueuedDelivery<M>): Promise<QueuedDelivery<M> | null> {
    if (!('message' in post)) return this.#work.fetch(post);
    this.#keptBytes -= post.bytes + OVERHEAD_BYTES;
    return post;
  }

  #admits({ publisher, conversation }: DeliveryRef): boolean {
    const { maxInFlight, perPublisher, conversationsPerPublisher, maxBytes } = this.#limits;
    const open = this.#conversations.get(publisher);
    return (
      this.#inFlight < maxInFlight &&
      this.#bytes < maxBytes &&
      (this.#ofPublisher.get(publisher) ?? 0) < perPublisher &&
      (open === undefined || open.size < conversationsPerPublisher || open.has(conversation))
    );
  }

  #enter({ publisher, conversation, bytes }: DeliveryRef): void {
    this.#inFlight += 1;
    this.#bytes += bytes;
    tally(this.#ofPublisher, publisher, 1);
    const open = this.#conversations.get(publisher) ?? new Map<string, number>();
    this.#conversations.set(publisher, open);
    tally(open, conversation, 1);
  }

  #leave({ publisher, conversation, bytes }: DeliveryRef): void {
    this.#inFlight -= 1;
    this.#bytes -= bytes;
    tally(this.#ofPublisher, publisher, -1);
    const open = this.#conversations.get(publisher);
    if (open) tally(open, conversation, -1);
    if (open?.size === 0) this.#conversations.delete(publisher);
    this.#pump();
    this.#onChange?.();
  }

  #deliver(post: QueuedDelivery<M>): void {
    void this.#work.deliver(post).then((settled) => {
      if (settled) this.#work.settled(post.sequence); // FAIR-QUEUE-4
      this.#leave(post);
    });
  }

  /** Delivers a post after those that are being read already (FAIR-QUEUE-1). */
  #deliverInOrder(ref: DeliveryRef, reading: Promise<QueuedDelivery<M> | null>): void {
    for (const lane of lanesOf(ref)) tally(this.#queued, lane, 1);
    const read = reading.catch(() => 'lost' as const);
    this.#delivering = this.#delivering.then(async () => {
      const post = await read;
      for (const lane of lanesOf(ref)) tally(this.#queued, lane, -1);
      if (post === null) this.#work.settled(ref.sequence); // FAIR-QUEUE-4
      if (post === null || post === 'lost' || this.#isClosed) this.#leave(ref);
      else this.#deliver(post);
    });
  }

  #pump(): void {
    while (!this.#isClosed && this.#inFlight < this.#limits.maxInFlight) {
      const post = this.#backlog.take((next) => this.#admits(next));
      if (!post) return;
      this.#enter(post);
      this.#deliverInOrder(post, this.#unpark(post));
    }
  }
}

function lanesOf({ publisher, conversation }: DeliveryRef): readonly string[] {
  return [`by ${publisher}`, `into ${conversation}`];
}

/**
 * Posts that are read and not yet delivered, in bounded memory.
 *
 * BACKLOG-1 A post is taken only when the backlog has no older post of its publisher and none into its conversation.
 * BACKLOG-2 Publishers are served round-robin, however many posts each has here.
 * BACKLOG-3 Posts of a publisher, and of a conversation, share one copy of its name.
 */
class Backlog<P extends DeliveryRef> {
  /** The first publisher is the next (BACKLOG-2). */
  readonly #byPublisher = new Map<string, Queue<P>>();
  readonly #byConversation = new Map<string, Queue<P>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** True: the backlog has a post that must be delivered before this one (BACKLOG-1). */
  mustWait({ publisher, conversation }: Pick<DeliveryRef, 'publisher' | 'conversation'>): boolean {
    return this.#byPublisher.has(publisher) || this.#byConversation.has(conversation);
  }

  /** Call it in the order of the sequences. */
  add(post: P): void {
    this.#size += 1;
    const publisher = this.#byPublisher.get(post.publisher)?.name ?? post.publisher;
    const conversation = this.#byConversation.get(post.conversation)?.name ?? post.conversation;
    const kept = { ...post, publisher, conversation };
    enqueue(this.#byPublisher, publisher, kept);
    enqueue(this.#byConversation, conversation, kept);
  }

  /** The next post of a publisher that `admits` accepts; null: there is none. */
  take(admits: (place: P) => boolean): P | null {
    for (let left = this.#byPublisher.size; left > 0; left--) {
      const [turn] = this.#byPublisher;
      if (!turn) return null;
      const [publisher, queue] = turn;
      this.#byPublisher.delete(publisher);
      this.#byPublisher.set(publisher, queue);
      const post = queue.first;
      const inConversation = post && this.#byConversation.get(post.conversation);
      if (!post || inConversation?.first !== post || !admits(post)) continue;
      if (queue.shift()) this.#byPublisher.delete(publisher);
      if (inConversation.shift()) this.#byConversation.delete(post.conversation);
      this.#size -= 1;
      return post;
    }
    return null;
  }
}

function enqueue<P>(queues: Map<string, Queue<P>>, name: string, post: P): void {
  const known = queues.get(name);
  if (known) known.push(post);
  else queues.set(name, new Queue(name, post));
}

/** First in, first out. `shift` takes constant time on average. */
class Queue<P> {
  readonly name: string;
  #posts: (P | undefined)[];
  #head = 0;

  constructor(name: string, first: P) {
    this.name = name;
    this.#posts = [first]; // `push` on an empty array would allocate 17 elements
  }

  get first(): P | undefined {
    return this.#posts[this.#head];
  }

  push(post: P): void {
    this.#posts.push(post);
  }

  /** True: it is empty now. */
  shift(): boolean {
    this.#posts[this.#head] = undefined; // it may have a body
    this.#head += 1;
    if (this.#head >= 1_024 && this.#head * 2 >= this.#posts.length) {
      this.#posts = this.#posts.slice(this.#head);
      this.#head = 0;
    }
    return this.#head >= this.#posts.length;
  }
}
