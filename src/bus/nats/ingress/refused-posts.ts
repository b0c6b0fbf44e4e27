import { decodeDeadLetter, SKIPPED } from '../../dead-letter.ts';
import type { StreamPosition } from '../../deliveries.ts';
import type { Letter } from '../../fate.ts';
import type { DeadLetter } from '../../port.ts';
import { ANY } from '../../subjects.ts';
import { brokerError } from '../streams/broker-error.ts';
import { findMessage } from '../streams/streams.ts';
import { tokenOf } from './dead-letters.ts';
import type { IngressSources } from './ingress-sources.ts';
import { StreamConsumer } from './stream-consumer.ts';

/** Letters that are requested at once. */
const PAGE = 64;

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
    for (let missing = consumer.pending; missing > 0; missing = consumer.pending) {
      const pull = await consumer.pull(Math.min(PAGE, missing), ({ subject, sequence, time, data }) => {
        const names = subjects.parseDead(subject);
        const at = new Date(Number(time / 1_000_000n)).toISOString();
        if (names) onLetter(decodeDeadLetter({ sequence, at, ...names }, data));
      });
      if (pull.kind !== 'filled') throw new Error(`reading ended: ${pull.kind}`);
    }
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
