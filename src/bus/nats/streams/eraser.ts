import type { JetStreamManager, StoredMsg } from 'nats';
import { decodeDeadLetter } from '../../dead-letter.ts';
import type { DeletedPosts, Erased, Eraser, StreamPosition } from '../../port.ts';
import { ANY, type Subjects } from '../../subjects.ts';
import { apiErrorCode, brokerError, MESSAGE_NOT_FOUND, STREAM_NOT_FOUND } from './broker-error.ts';
import { findStream } from './streams.ts';

/** Of one request, which is answered soon also where the server is slow; the rest goes with the next look. */
const MOST_AT_ONCE = 2_000;
const MOST_MS = 1_000;

interface Part {
  readonly erased: number;
  readonly isWhole: boolean;
}

/**
 * Removes the texts of deleted conversations from the ingress stream and from the dead-letter stream.
 *
 * ERASE-1  Only posts up to the sequence of the deletion go, and only settled ones: an unsettled post belongs to the
 *          daemon that has yet to decide on it, and goes once it is settled.
 * ERASE-2  Messages are deleted one by one: a purge makes nats-server forget what a shared consumer handed out
 *          (`purger.ts`, PURGER-4). The server overwrites each message in its file.
 * ERASE-3  A dead letter goes unless its post came after the deletion, in the same life of the ingress stream.
 */
export class NatsEraser implements Eraser {
  readonly #manager: JetStreamManager;
  readonly #subjects: Subjects;

  constructor(manager: JetStreamManager, subjects: Subjects) {
    this.#manager = manager;
    this.#subjects = subjects;
  }

  async leftOf(deleted: readonly DeletedPosts[]): Promise<DeletedPosts[]> {
    const { ingressStream, deadStream } = this.#subjects;
    const posts = await this.#subjectsIn(ingressStream, this.#subjects.in(ANY, ANY));
    const letters = await this.#subjectsIn(deadStream, this.#subjects.dead(ANY, ANY));
    const held = new Set([
      ...posts.map((subject) => this.#subjects.parseIn(subject)?.conversation),
      ...letters.map((subject) => this.#subjects.parseDead(subject)?.conversation),
    ]);
    return deleted.filter(({ conversation }) => held.has(conversation));
  }

  async erase(deleted: DeletedPosts, isSettled: (position: StreamPosition) => boolean): Promise<Erased> {
    const posts = await this.#erasePosts(deleted, isSettled);
    const letters = await this.#eraseLetters(deleted);
    const isWhole = posts.isWhole && letters.isWhole;
    return { posts: posts.erased, deadLetters: letters.erased, isWhole };
  }

  async expireDeadLetters(before: number, most: number): Promise<number> {
    const { deadStream } = this.#subjects;
    const all = this.#subjects.dead(ANY, ANY);
    const decide = ({ time }: StoredMsg) => (time.getTime() < before ? 'erase' : 'end'); // it is in order of time
    return (await this.#eraseEach(deadStream, all, decide, most)).erased;
  }

  async #erasePosts(
    { conversation, stream, sequence }: DeletedPosts,
    isSettled: (position: StreamPosition) => boolean,
  ): Promise<Part> {
    const { ingressStream } = this.#subjects;
    const info = await findStream(this.#manager, ingressStream);
    if (info?.created !== stream) return { erased: 0, isWhole: true }; // another life of the stream
    return this.#eraseEach(ingressStream, this.#subjects.in(ANY, conversation), ({ seq }) => {
      if (seq > sequence) return 'end';
      return isSettled({ stream, sequence: seq }) ? 'erase' : 'stop'; // ERASE-1
    });
  }

  #eraseLetters({ conversation, stream, sequence }: DeletedPosts): Promise<Part> {
    return this.#eraseEach(this.#subjects.deadStream, this.#subjects.dead(ANY, conversation), (letter) => {
      const place = { sequence: letter.seq, at: letter.time.toISOString(), publisher: '', conversation };
      const { ingress } = decodeDeadLetter(place, letter.data);
      return ingress?.stream === stream && ingress.sequence > sequence ? 'pass' : 'erase'; // ERASE-3
    });
  }

  /** In order, up to the first that `decide` ends at (`stop`: with more to come) or as many as one request may. */
  async #eraseEach(
    stream: string,
    filter: string,
    decide: (message: StoredMsg) => 'erase' | 'pass' | 'end' | 'stop',
    most = MOST_AT_ONCE,
  ): Promise<Part> {
    let erased = 0;
    const end = performance.now() + MOST_MS;
    for (let from = 1; erased < most && performance.now() < end; ) {
      const found = await this.#next(stream, filter, from);
      const decision = found === null ? 'end' : decide(found);
      if (found === null || decision === 'end' || decision === 'stop')
        return { erased, isWhole: decision === 'end' };
      if (decision === 'erase' && (await this.#remove(stream, found.seq))) erased += 1;
      from = found.seq + 1;
    }
    return { erased, isWhole: false };
  }

  async #subjectsIn(stream: string, filter: string): Promise<string[]> {
    try {
      const { state } = await this.#manager.streams.info(stream, { subjects_filter: filter });
      return Object.keys(state.subjects ?? {});
    } catch (error) {
      if (apiErrorCode(error) === STREAM_NOT_FOUND) return [];
      throw brokerError(error, `read stream ${stream}`);
    }
  }

  /** The oldest message from `from` on; null: there is none. */
  async #next(stream: string, filter: string, from: number): Promise<StoredMsg | null> {
    const query: { readonly seq: number; readonly next_by_subj: string } = {
      seq: from,
      next_by_subj: filter,
    };
    try {
      return await this.#manager.streams.getMessage(stream, query);
    } catch (error) {
      const code = apiErrorCode(error);
      if (code === MESSAGE_NOT_FOUND || code === STREAM_NOT_FOUND) return null;
      throw brokerError(error, `read stream ${stream}`);
    }
  }

  /** ERASE-2. False: it is gone already. */
  async #remove(stream: string, sequence: number): Promise<boolean> {
    try {
      return await this.#manager.streams.deleteMessage(stream, sequence, true);
    } catch (error) {
      const isThere =
        apiErrorCode(error) === null || (await this.#next(stream, '>', sequence))?.seq === sequence;
      if (isThere) throw brokerError(error, `delete from stream ${stream}`);
      return false;
    }
  }
}
