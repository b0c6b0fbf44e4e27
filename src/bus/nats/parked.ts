/** A post that was read and not delivered, without its body. */
export interface Place {
  readonly sequence: number;
  readonly publisher: string;
  readonly conversation: string;
  /** Of its body. */
  readonly bytes: number;
}

/**
 * Posts that wait for their turn, in bounded memory.
 *
 * K1 A post comes out when no older one of its publisher and none into its conversation waits: both orders stay.
 * K2 Publishers take turns: however many of one wait, another's waits for one of each.
 * K3 A place takes some 70 bytes: its names are those of all places of its publisher and conversation, which came with
 *    each post anew.
 */
export class Parked<P extends Place> {
  /** The first is next in turn (K2). */
  readonly #byPublisher = new Map<string, Queue<P>>();
  readonly #byConversation = new Map<string, Queue<P>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** A post that comes now has to wait behind another (K1). */
  holdsBefore({ publisher, conversation }: Pick<Place, 'publisher' | 'conversation'>): boolean {
    return this.#byPublisher.has(publisher) || this.#byConversation.has(conversation);
  }

  /** In the order of their sequences. */
  add(place: P): void {
    this.#size += 1;
    const ofPublisher = queueOf(this.#byPublisher, place.publisher);
    const inConversation = queueOf(this.#byConversation, place.conversation);
    const kept = { ...place, publisher: ofPublisher.name, conversation: inConversation.name }; // K3
    ofPublisher.push(kept);
    inConversation.push(kept);
  }

  /** The next one of a publisher who is admitted; null: none may come out now. */
  take(admits: (publisher: string) => boolean): P | null {
    for (let left = this.#byPublisher.size; left > 0; left--) {
      const [turn] = this.#byPublisher;
      if (!turn) return null;
      const [publisher, queue] = turn;
      this.#byPublisher.delete(publisher);
      this.#byPublisher.set(publisher, queue); // K2
      const place = queue.first;
      const inConversation = place && this.#byConversation.get(place.conversation);
      if (!place || inConversation?.first !== place || !admits(publisher)) continue; // K1
      if (queue.shift()) this.#byPublisher.delete(publisher);
      if (inConversation.shift()) this.#byConversation.delete(place.conversation);
      this.#size -= 1;
      return place;
    }
    return null;
  }
}

function queueOf<P>(queues: Map<string, Queue<P>>, name: string): Queue<P> {
  const known = queues.get(name);
  if (known) return known;
  const queue = new Queue<P>(name);
  queues.set(name, queue);
  return queue;
}

/** First in, first out, without moving what waits at each step. */
class Queue<P> {
  readonly name: string;
  #places: (P | undefined)[] = [];
  #head = 0;

  constructor(name: string) {
    this.name = name;
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
