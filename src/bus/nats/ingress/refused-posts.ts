import { AckPolicy, DeliverPolicy, nanos, nuid, ReplayPolicy } from 'nats';
import { decodeDeadLetter, SKIPPED } from '../../dead-letter.ts';
import type { RefusedRuns } from '../../deliveries.ts';
import type { DeadLetter, Delivery, StreamPosition } from '../../port.ts';
import { ANY } from '../../subjects.ts';
import { apiErrorCode, brokerError, MESSAGE_NOT_FOUND, STREAM_NOT_FOUND } from '../streams/broker-error.ts';
import { deadSubject, SEVERAL } from './dead-letters.ts';
import type { IngressSources } from './ingress-sources.ts';

/** Letters that are requested at once. */
const PAGE = 64;
const EXPIRES_MS = 5_000;
/** The server removes the consumer of a killed daemon after this time. */
const INACTIVE_MS = 30_000;

/** Cache size: pairs of publisher and conversation. */
const MOST_SUBJECTS = 10_000;
/** Letters written by this daemon and cached for each pair; above it, the older half is removed. */
const MOST_WRITTEN = 2_000;

type Sources = Pick<IngressSources, 'connection' | 'manager' | 'subjects'>;

/** The letters of one publisher in one conversation. */
interface Letters {
  /** The cache is complete for posts that the stream stored at this time or later. */
  from: number;
  /** Time of each letter by position. Concurrent callers share one read. */
  readonly read: Promise<ReadonlyMap<string, number>>;
  /** Letters written by this daemon since: time of each post by position, oldest first. */
  readonly written: Map<string, number>;
}

/**
 * Knows which posts have a dead letter, so that a repeated post (a replay, a stream read from its start, a crash before the
 * position was saved) gets no second one. Letters are read once for each publisher in a conversation: in a flood, reading
 * them again would take longer than refusing the posts.
 */
export class RefusedPosts {
  readonly #sources: Sources;
  readonly #known = new Map<string, Letters>();

  constructor(sources: Sources) {
    this.#sources = sources;
  }

  async has(delivery: Delivery): Promise<boolean> {
    const { read, written } = this.#lettersOf(delivery);
    const key = positionKey(delivery);
    const at = written.get(key) ?? (await read).get(key);
    return at !== undefined && at >= delivery.takenAt;
  }

  /** Call it when the letter of the post is stored. */
  add(delivery: Delivery): void {
    const letters = this.#known.get(keyOf(delivery));
    if (!letters) return;
    const { written } = letters;
    written.set(positionKey(delivery), delivery.takenAt);
    if (written.size <= MOST_WRITTEN) return;
    for (const [key, takenAt] of [...written].slice(0, MOST_WRITTEN / 2)) {
      written.delete(key);
      letters.from = Math.max(letters.from, takenAt + 1);
    }
  }

  #lettersOf(delivery: Delivery): Letters {
    const { takenAt, position } = delivery;
    const key = keyOf(delivery);
    const known = this.#known.get(key); // may be incomplete for an older post
    if (known && known.from <= takenAt) return known;
    const read = refusedFrom(this.#sources, delivery).then(
      (found) => new Map([...found].map(([at, time]) => [`${position.stream} ${at}`, time])),
    );
    const letters: Letters = { from: takenAt, read, written: new Map() };
    read.catch(() => this.#known.get(key) === letters && this.#known.delete(key));
    const [oldest] = this.#known.keys();
    if (this.#known.size >= MOST_SUBJECTS && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(key, letters);
    return letters;
  }
}

function keyOf({ publisher, conversation }: Delivery): string {
  return `${publisher} ${conversation}`;
}

function positionKey({ position }: Delivery): string {
  return `${position.stream} ${position.sequence}`;
}

/**
 * The posts with a dead letter, from this post on, of its publisher into its conversation: time of the letter by sequence.
 * Reads only the newest letter in the usual case that none is newer than the post.
 */
async function refusedFrom(
  sources: Sources,
  { publisher, conversation, position, takenAt }: Delivery,
): Promise<ReadonlyMap<number, number>> {
  const { manager, subjects } = sources;
  const stream = subjects.deadStream;
  const subject = deadSubject(subjects, publisher, conversation);
  const letterOf = (_: string, sequence: number, at: Date, data: Uint8Array) =>
    decodeDeadLetter({ sequence, at: at.toISOString(), publisher, conversation }, data);
  const found = new Map<number, number>();
  const add = ({ at, ingress }: DeadLetter) => {
    if (ingress?.stream === position.stream) found.set(ingress.sequence, Date.parse(at));
  };
  try {
    const { seq, time, data } = await manager.streams.getMessage(stream, { last_by_subj: subject });
    if (time.getTime() < takenAt) return found;
    add(letterOf(subject, seq, time, data));
    await readSince(sources, subject, takenAt, (...letter) => add(letterOf(...letter)));
    return found;
  } catch (error) {
    const code = apiErrorCode(error);
    if (code === MESSAGE_NOT_FOUND || code === STREAM_NOT_FOUND) return found;
    throw brokerError(error, `read stream ${stream}`);
  }
}

async function readSince(
  { connection, manager, subjects }: Sources,
  subject: string,
  since: number,
  onLetter: (subject: string, sequence: number, at: Date, data: Uint8Array) => void,
): Promise<void> {
  const stream = subjects.deadStream;
  const name = `parley-letters-${nuid.next()}`;
  const { num_pending: pending } = await manager.consumers.add(stream, {
    name,
    ack_policy: AckPolicy.None,
    replay_policy: ReplayPolicy.Instant,
    deliver_policy: DeliverPolicy.StartTime,
    opt_start_time: new Date(since).toISOString(),
    filter_subject: subject,
    mem_storage: true,
    num_replicas: 1,
    inactive_threshold: nanos(INACTIVE_MS),
  });
  try {
    const consumer = await connection.jetstream().consumers.get(stream, name);
    for (let missing = pending; missing > 0; ) {
      const before = missing;
      for await (const message of await consumer.fetch({
        max_messages: Math.min(PAGE, missing),
        expires: EXPIRES_MS,
      })) {
        missing = message.info.pending;
        const at = new Date(Math.floor(message.info.timestampNanos / 1_000_000));
        onLetter(message.subject, message.seq, at, message.data);
      }
      if (missing === before) throw new Error('the server does not answer');
    }
  } finally {
    manager.consumers.delete(stream, name).catch(() => undefined); // the server removes it after INACTIVE_MS
  }
}

/** Whether a dead letter names this post, alone or among many. */
export type WasRefused = (publisher: string, sequence: number, takenAt: number) => boolean;

/**
 * Reads which posts after this position were refused: they stay refused, whatever would be decided now. A replay decides on
 * those with a letter of their own again, and answers posts that were skipped.
 */
export async function refusedAfter(
  sources: Sources,
  { stream, sequence }: StreamPosition,
  isReplay = false,
): Promise<WasRefused> {
  const { manager, subjects } = sources;
  const known = new Map<string, NamedRun[]>();
  const query: { seq: number; next_by_subj: string } = {
    seq: sequence + 1,
    next_by_subj: subjects.in(ANY, ANY),
  };
  try {
    const { time } = await manager.streams.getMessage(subjects.ingressStream, query);
    const filter = subjects.dead(ANY, isReplay ? SEVERAL : ANY);
    await manager.streams.getMessage(subjects.deadStream, { last_by_subj: filter }); // usually throws: no such letter
    await readSince(sources, filter, time.getTime(), (subject, position, at, data) => {
      const names = subjects.parseDead(subject);
      const found = names && decodeDeadLetter({ sequence: position, at: at.toISOString(), ...names }, data);
      const letter = found?.refused ?? alone(found?.ingress);
      if (letter?.stream !== stream || (isReplay && found?.code === SKIPPED)) return;
      const runs = known.get(names?.publisher ?? '') ?? [];
      known.set(names?.publisher ?? '', runs);
      for (const [first, last] of letter.runs)
        if (last > sequence) runs.push({ first, last, at: at.getTime() });
    });
  } catch (error) {
    const code = apiErrorCode(error);
    if (code !== MESSAGE_NOT_FOUND && code !== STREAM_NOT_FOUND)
      throw brokerError(error, `read stream ${subjects.deadStream}`);
  }
  const sorted = new Map([...known].map(([publisher, runs]) => [publisher, withoutOverlaps(runs)]));
  return (publisher, place, takenAt) => {
    const run = runBefore(sorted.get(publisher) ?? [], place);
    return run !== undefined && place <= run.last && run.at >= takenAt;
  };
}

function alone(position: StreamPosition | undefined): Pick<RefusedRuns, 'stream' | 'runs'> | undefined {
  return position && { stream: position.stream, runs: [[position.sequence, position.sequence]] };
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
