import type { JetStreamManager, StoredMsg } from 'nats';
import { apiErrorCode, STREAM_NOT_FOUND } from '../../../kernel/index.ts';
import { decodeDeadLetter } from '../../dead-letter.ts';
import type { DeletedPosts, Erased, Eraser } from '../../port.ts';
import type { StreamPosition } from '../../post.ts';
import { ANY, type Subjects } from '../../subjects.ts';
import { brokerError } from './broker-error.ts';
import { findMessage, findStream } from './streams.ts';

/** Limits of one run, so that it ends soon even if the server is slow. The next run continues. */
const MOST_AT_ONCE = 2_000;
const MOST_MS = 1_000;

interface Part {
  readonly erased: number;
  readonly isWhole: boolean;
}

/**
 * Erases the texts of deleted conversations from the ingress stream and from the dead-letter stream.
 *
 * ERASE-1  Only settled posts up to the sequence of the deletion are erased. An unsettled post is erased once a daemon has
 *          settled it.
 * ERASE-2  Messages are deleted one by one: then the server overwrites each message in its file.
 * ERASE-3  A dead letter is erased unless its post is in the current ingress stream and newer than the deletion.
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
    const decide = ({ time }: StoredMsg) => (time.getTime() < before ? 'erase' : 'end'); // the stream is ordered by time
    return (await this.#eraseEach(deadStream, all, decide, most)).erased;
  }

  async #erasePosts(
    { conversation, stream, sequence }: DeletedPosts,
    isSettled: (position: StreamPosition) => boolean,
  ): Promise<Part> {
    const { ingressStream } = this.#subjects;
    const info = await findStream(this.#manager, ingressStream);
    if (info?.created !== stream) return { erased: 0, isWhole: true }; // the stream was created again
    return this.#eraseEach(ingressStream, this.#subjects.in(ANY, conversation), ({ seq }) => {
      if (seq > sequence) return 'end';
      return isSettled({ stream, sequence: seq }) ? 'erase' : 'stop';
    });
  }

  #eraseLetters({ conversation, stream, sequence }: DeletedPosts): Promise<Part> {
    return this.#eraseEach(this.#subjects.deadStream, this.#subjects.dead(ANY, conversation), (letter) => {
      const stored = { sequence: letter.seq, at: letter.time.toISOString(), publisher: '', conversation };
      const { ingress } = decodeDeadLetter(stored, letter.data);
      return ingress?.stream === stream && ingress.sequence > sequence ? 'pass' : 'erase';
    });
  }

  /** Processes messages in order until `decide` returns `end` or `stop` (more remain), or a limit is reached. */
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

  /** The oldest message with a sequence of at least `from`; null: there is none. */
  #next(stream: string, filter: string, from: number): Promise<StoredMsg | null> {
    return findMessage(this.#manager, stream, { seq: from, next_by_subj: filter });
  }

  /** ERASE-2. False: it was already deleted. */
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
