/** A post that was read and not delivered, without its body. */
export interface PostPlace {
  readonly sequence: number;
  readonly publisher: string;
  readonly conversation: string;
  /** Of its body. */
  readonly bytes: number;
}

/**
 * Posts that wait for their turn, in bounded memory.
 *
 * BACKLOG-1 A post comes out when no older one of its publisher and none into its conversation waits: both orders stay.
 * BACKLOG-2 Publishers take turns: however many of one wait, another's waits for one of each.
 * BACKLOG-3 Places of a publisher, and of a conversation, share its name, which comes with each post anew.
 */
export class Backlog<P extends PostPlace> {
  /** The first is next in turn (BACKLOG-2). */
  readonly #byPublisher = new Map<string, Queue<P>>();
  readonly #byConversation = new Map<string, Queue<P>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** A post that comes now has to wait behind another (BACKLOG-1). */
  holdsBefore({ publisher, conversation }: Pick<PostPlace, 'publisher' | 'conversation'>): boolean {
    return this.#byPublisher.has(publisher) || this.#byConversation.has(conversation);
  }

  /** In the order of their sequences. */
  add(place: P): void {
    this.#size += 1;
    const publisher = this.#byPublisher.get(place.publisher)?.name ?? place.publisher;
    const conversation = this.#byConversation.get(place.conversation)?.name ?? place.conversation;
    const kept = { ...place, publisher, conversation }; // BACKLOG-3
    enqueue(this.#byPublisher, publisher, kept);
    enqueue(this.#byConversation, conversation, kept);
  }

  /** The next one of a publisher who is admitted; null: none may come out now. */
  take(admits: (place: P) => boolean): P | null {
    for (let left = this.#byPublisher.size; left > 0; left--) {
      const [turn] = this.#byPublisher;
      if (!turn) return null;
      const [publisher, queue] = turn;
      this.#byPublisher.delete(publisher);
      this.#byPublisher.set(publisher, queue); // BACKLOG-2
      const place = queue.first;
      const inConversation = place && this.#byConversation.get(place.conversation);
      if (!place || inConversation?.first !== place || !admits(place)) continue; // BACKLOG-1
      if (queue.shift()) this.#byPublisher.delete(publisher);
      if (inConversation.shift()) this.#byConversation.delete(place.conversation);
      this.#size -= 1;
      return place;
    }
    return null;
  }
}

function enqueue<P>(queues: Map<string, Queue<P>>, name: string, place: P): void {
  const known = queues.get(name);
  if (known) known.push(place);
  else queues.set(name, new Queue(name, place));
}

/** First in, first out, without moving what waits at each step. */
class Queue<P> {
  readonly name: string;
  #places: (P | undefined)[];
  #head = 0;

  constructor(name: string, first: P) {
    this.name = name;
    this.#places = [first]; // one that is pushed takes room for seventeen (BACKLOG-3)
  }

  get first(): P | undefined {
    return this.#places[this.#head];
  }

  push(place: P): void {
    this.#places.push(place);
  }

  /** True: it is empty now. */
  shift(): boolean {
    this.#places[this.#head] = undefined; // it may hold a body
    this.#head += 1;
    if (this.#head >= 1_024 && this.#head * 2 >= this.#places.length) {
      this.#places = this.#places.slice(this.#head);
      this.#head = 0;
    }
    return this.#head >= this.#places.length;
  }
}
