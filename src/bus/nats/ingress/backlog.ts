/** A post without its message. */
export interface DeliveryRef {
  readonly sequence: number;
  readonly publisher: string;
  readonly conversation: string;
  /** The size of its body. */
  readonly bytes: number;
}

/**
 * Posts that are read and not yet delivered, in bounded memory.
 *
 * BACKLOG-1 A post is taken only when the backlog has no older post of its publisher and none into its conversation.
 * BACKLOG-2 Publishers are served round-robin, however many posts each has here.
 * BACKLOG-3 Posts of a publisher, and of a conversation, share one copy of its name.
 */
export class Backlog<P extends DeliveryRef> {
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
