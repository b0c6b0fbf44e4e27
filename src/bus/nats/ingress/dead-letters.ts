import type { JetStreamClient, JetStreamManager, StoredMsg } from 'nats';
import { NAME_PATTERN } from '../../../conversation/index.ts';
import { messageOf, ParleyError, remember, sleep } from '../../../kernel/index.ts';
import { decodeDeadLetter, encodeDeadLetter, encodeRefusedRuns, SKIPPED } from '../../dead-letter.ts';
import type { Bus, DeadLetter, DeadLetterQuery, DeadLetters } from '../../port.ts';
import { isLegalId, type Letter, type StreamPosition } from '../../post.ts';
import { ANY, type Subjects } from '../../subjects.ts';
import { brokerError } from '../streams/broker-error.ts';
import { findMessage, findStream } from '../streams/streams.ts';
import { type IngressSources, StreamConsumer } from './stored-posts.ts';

/** Replaces a name that cannot be a subject token. */
const INVALID_TOKEN = '_invalid';
/** Replaces the conversation in the subject of a dead letter of many posts. */
const SEVERAL = '_several';
const PUBLISH_TIMEOUT_MS = 5_000;
const SHORTEST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

interface DeadLetterOptions extends Omit<IngressSources, 'capacity' | 'stream'> {
  readonly maxPayload: () => number;
  readonly closing: AbortSignal;
}

/** A name in the subject of a dead letter, also of a refused post with invalid names. */
function tokenOf(name: string): string {
  return NAME_PATTERN.test(name) ? name : INVALID_TOKEN;
}

/**
 * Stores the dead letters of refused posts. Retries until the stream has a letter, because the post is settled then. Rejects with
 * `BUS_CLOSED` if the bus closes first; the post is refused again after a restart.
 */
export class DeadLetterWriter {
  readonly #options: DeadLetterOptions;
  readonly #jetstream: JetStreamClient;
  readonly #share: DeadLetterShare;

  constructor(options: DeadLetterOptions) {
    this.#options = options;
    this.#jetstream = options.connection.jetstream();
    this.#share = new DeadLetterShare({ ...options, stream: options.subjects.deadStream });
  }

  /** The server keeps one letter, also if two daemons refuse the post at once, or if its confirmation is lost. */
  publishDead: Bus['publishDead'] = async (delivery, refused, id, mayStore) => {
    const { publisher, conversation, body, messageId, fallbackId, position: ingress } = delivery;
    const msgID = [publisher, conversation, ingress.stream, ingress.sequence, delivery.takenAt]
      .map((part) => encodeURIComponent(part))
      .join(' ');
    const names = [tokenOf(publisher), tokenOf(conversation)] as const;
    const origin = { id: id || legalId(messageId) || fallbackId, ingress };
    const encode = () => encodeDeadLetter(refused, body, origin, this.#options.maxPayload());
    return this.#keep(names, encode, mayStore, { msgID });
  };

  publishRefusedRuns: Bus['publishRefusedRuns'] = async (publisher, posts, refused, mayStore) => {
    await this.#keep([tokenOf(publisher), SEVERAL], () => encodeRefusedRuns(refused, posts), mayStore);
  };

  async #keep(
    [publisher, conversation]: readonly [string, string],
    encode: () => Uint8Array,
    mayStore: (() => Promise<void>) | undefined,
    once: { readonly msgID?: string } = {},
  ): Promise<number> {
    const { subjects, log, closing, watch, ensureStreams } = this.#options;
    const subject = subjects.dead(publisher, conversation);
    for (let wait = SHORTEST_PAUSE_MS; ; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
      await watch.connected(LONGEST_PAUSE_MS, closing);
      if (closing.aborted) throw busClosed(subject);
      await mayStore?.(); // the server detects a repetition for two minutes only
      try {
        const letter = encode();
        const options = { ...once, timeout: PUBLISH_TIMEOUT_MS };
        const { seq } = await this.#jetstream.publish(subject, letter, options);
        void this.#share.stored(subjects.dead(publisher, ANY), letter.length);
        return seq;
      } catch (error) {
        if (closing.aborted) throw busClosed(subject);
        log.warn({ subject, reason: messageOf(error) }, 'a dead letter could not be stored; retrying');
      }
      await sleep(wait, closing);
      await ensureStreams().catch(() => undefined);
    }
  }
}

/** Null for an illegal id, which may be why the post was refused. */
function legalId(messageId: string | null): string | null {
  return messageId !== null && isLegalId(messageId) ? messageId : null;
}

function busClosed(subject: string): ParleyError {
  return new ParleyError('BUS_CLOSED', `the bus closed before a dead letter for ${subject} was stored`, {
    hint: 'nothing to do: the post is read and refused again at the next start',
  });
}

/** The part of the stream that the letters of one publisher may fill. */
const SHARE = 1 / 4;
const STEP_BYTES = 4 * 1_024 ** 2;
const MANY = 10_000;

interface ShareOptions extends Pick<IngressSources, 'manager' | 'log'> {
  readonly stream: string;
}

/**
 * Limits the dead letters of one publisher to a quarter of the stream, so that they do not displace those of others. Only its
 * own oldest letters are removed. The share is enforced each time that they have grown by `STEP_BYTES`, and is approximate: the
 * number of letters to keep is computed from their mean size.
 */
export class DeadLetterShare {
  readonly #options: ShareOptions;
  /** Letters stored since the share was last enforced, by the subject filter of their publisher. */
  readonly #stored = new Map<string, { letters: number; bytes: number }>();

  constructor(options: ShareOptions) {
    this.#options = options;
  }

  /** Counts a stored letter and enforces the share. `filter` matches all letters of its publisher. Does not reject. */
  async stored(filter: string, size: number): Promise<void> {
    const { letters, bytes } = this.#stored.get(filter) ?? { letters: 0, bytes: 0 };
    const stored = { letters: letters + 1, bytes: bytes + size };
    remember(this.#stored, filter, stored, MANY);
    if (stored.bytes < STEP_BYTES) return;
    this.#stored.delete(filter);
    const { manager, stream, log } = this.#options;
    try {
      const most = (await findStream(manager, stream))?.config.max_bytes ?? 0;
      if (most <= 0) return;
      const mean = stored.bytes / stored.letters;
      const keep = Math.max(1, Math.floor(Math.max(0, most * SHARE - STEP_BYTES) / mean));
      const { purged } = await manager.streams.purge(stream, { filter, keep });
      if (purged > 0) log.info({ filter, purged }, 'the oldest dead letters of a publisher were removed');
    } catch (error) {
      log.warn({ filter, reason: messageOf(error) }, 'the dead letters of a publisher could not be limited');
    }
  }
}

/** Concurrent requests. Streams cannot be read backwards, so each letter is requested by its sequence. */
const AT_ONCE = 64;
/** Sequences that one page examines. */
const MOST_EXAMINED = 1_024;

/** The dead-letter stream for the commands that list, repeat and delete dead letters. */
export function createDeadLetters(manager: JetStreamManager, subjects: Subjects): DeadLetters {
  const { deadStream: stream, ingressStream } = subjects;

  async function get(sequence: number): Promise<DeadLetter | null> {
    const stored = await findMessage(manager, stream, { seq: sequence });
    return stored && letterOf(subjects, stored);
  }

  async function page(query: DeadLetterQuery) {
    const info = await findStream(manager, stream);
    const first = Math.max(1, info?.state.first_seq ?? 1);
    const last = info?.state.last_seq ?? 0;
    let at = Math.min(last, (query.before ?? Number.POSITIVE_INFINITY) - 1);
    const lowest = Math.max(first, at - MOST_EXAMINED + 1);
    const letters: DeadLetter[] = [];
    while (at >= lowest && letters.length < query.limit) {
      const sequences = Array.from({ length: Math.min(AT_ONCE, at - lowest + 1) }, (_, back) => at - back);
      const found = await Promise.all(sequences.map(get));
      for (const letter of found) {
        if (letters.length === query.limit) break;
        at -= 1;
        if (letter && fits(letter, query)) letters.push(letter);
      }
    }
    return { letters, next: at >= first ? at + 1 : null };
  }

  async function remove(sequence: number): Promise<void> {
    try {
      await manager.streams.deleteMessage(stream, sequence, false);
    } catch (error) {
      if ((await get(sequence)) !== null) throw brokerError(error, `delete from ${stream}`);
    }
  }

  const count = async () => (await findStream(manager, stream))?.state.messages ?? 0;
  return { ingressStream, get, page, count, remove };
}

function letterOf(subjects: Subjects, stored: StoredMsg): DeadLetter {
  const names = subjects.parseDead(stored.subject) ?? { publisher: '', conversation: '' };
  return decodeDeadLetter({ sequence: stored.seq, at: stored.time.toISOString(), ...names }, stored.data);
}

function fits(letter: DeadLetter, { publisher, conversation, code }: DeadLetterQuery): boolean {
  return (
    (publisher === undefined || letter.publisher === publisher) &&
    (conversation === undefined || letter.conversation === conversation) &&
    (code === undefined || letter.code === code)
  );
}

type Sources = Pick<IngressSources, 'connection' | 'manager' | 'subjects'>;

/** The letter that names this post, if it is not older than the post: another one may have had its sequence. */
export type LetterOf = (publisher: string, sequence: number, takenAt: number) => Letter | null;

/**
 * Reads which posts after this position have a dead letter: they stay refused, whatever would be decided now. A replay
 * answers posts that were skipped, so their letters do not count then.
 */
export async function refusedAfter(
  sources: Sources,
  { stream, sequence }: StreamPosition,
  isReplay = false,
): Promise<LetterOf> {
  const { manager, subjects } = sources;
  const own = new Map<string, number>();
  const shared = new Map<string, NamedRun[]>();
  const unsettled = { seq: sequence + 1, next_by_subj: subjects.in(ANY, ANY) };
  const oldest = await findMessage(manager, subjects.ingressStream, unsettled);
  const newest = await findMessage(manager, subjects.deadStream, { last_by_subj: subjects.dead(ANY, ANY) });
  if (oldest === null || newest === null || newest.time < oldest.time) return () => null;
  const read = readSince(sources, oldest.time, ({ publisher, at: stored, ingress, refused, code }) => {
    const at = Date.parse(stored);
    if (ingress?.stream === stream) own.set(`${publisher} ${ingress.sequence}`, at);
    if (refused?.stream !== stream || (isReplay && code === SKIPPED)) return;
    const runs = shared.get(publisher) ?? [];
    shared.set(publisher, runs);
    for (const [first, last] of refused.runs) if (last > sequence) runs.push({ first, last, at });
  });
  await read.catch((error) => {
    throw brokerError(error, `read stream ${subjects.deadStream}`);
  });
  const sorted = new Map([...shared].map(([publisher, runs]) => [publisher, withoutOverlaps(runs)]));
  return (publisher, place, takenAt) => {
    const name = tokenOf(publisher);
    const run = runBefore(sorted.get(name) ?? [], place);
    if (run !== undefined && place <= run.last && run.at >= takenAt) return 'shared';
    return (own.get(`${name} ${place}`) ?? Number.NEGATIVE_INFINITY) >= takenAt ? 'own' : null;
  };
}

async function readSince(
  { connection, manager, subjects }: Sources,
  since: Date,
  onLetter: (letter: DeadLetter) => void,
): Promise<void> {
  const options = { since, filter: subjects.dead(ANY, ANY) };
  const consumer = await StreamConsumer.open(connection, manager, subjects.deadStream, 1, options);
  try {
    await consumer.toEnd(({ subject, sequence, time, data }) => {
      const names = subjects.parseDead(subject);
      const at = new Date(Number(time / 1_000_000n)).toISOString();
      if (names) onLetter(decodeDeadLetter({ sequence, at, ...names }, data));
    });
  } finally {
    consumer.close();
  }
}

interface NamedRun {
  readonly first: number;
  last: number;
  /** When the stream took the letter: milliseconds since the epoch. */
  at: number;
}

/** In ascending order. Two publishers that flood in turn cause a run for each post, so runs are searched by halving. */
function withoutOverlaps(runs: readonly NamedRun[]): readonly NamedRun[] {
  const merged: NamedRun[] = [];
  for (const run of [...runs].sort((one, other) => one.first - other.first)) {
    const before = merged.at(-1);
    if (!before || run.first > before.last) merged.push({ ...run });
    else Object.assign(before, { last: Math.max(before.last, run.last), at: Math.max(before.at, run.at) });
  }
  return merged;
}

/** The last that begins at this place or before it. */
function runBefore(runs: readonly NamedRun[], place: number): NamedRun | undefined {
  let [low, high] = [0, runs.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((runs[middle]?.first ?? 0) <= place) low = middle + 1;
    else high = middle;
  }
  return runs[low - 1];
}
