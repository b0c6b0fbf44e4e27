import type { Entry, EntryOf } from '../../../src/client/index.ts';
import type { Life, Outage } from '../actors/daemon.ts';
import type { Observed } from '../findings.ts';
import { outstandingIn } from './answers.ts';

/**
 * How long conversations with outstanding work waited for another daemon after a kill or freeze of their own: until
 * the next claim, by the logs and the recorded faults. The time without any other daemon is not counted.
 */

/** A longer freeze without a claim counts as a wait of its length. A shorter one need not be noticed. */
const WANTED_MS = 10_000;

export interface Takeovers {
  readonly count: number;
  readonly medianMs: number;
  readonly p99Ms: number;
  readonly mostMs: number;
}

/** The faults of daemons, and the times in which daemons ran. */
export interface Seen {
  readonly outages: readonly Outage[];
  readonly lives: readonly Life[];
}

/** Null: there was none. */
export function takeoversIn(logs: Observed['logs'], seen: Seen): Takeovers | null {
  const waits = waitsIn(logs, seen).sort((a, b) => a - b);
  const at = (share: number) => waits[Math.min(waits.length - 1, Math.floor(waits.length * share))];
  const [medianMs, p99Ms, mostMs] = [at(0.5), at(0.99), at(1)];
  if (medianMs === undefined || p99Ms === undefined || mostMs === undefined) return null;
  return { count: waits.length, medianMs, p99Ms, mostMs };
}

/** In milliseconds. */
export function waitsIn(logs: Observed['logs'], seen: Seen): number[] {
  const byDaemon = new Map<string, Outage[]>();
  for (const outage of seen.outages)
    byDaemon.set(outage.daemon, [...(byDaemon.get(outage.daemon) ?? []), outage]);
  return [...logs.values()].flatMap((entries) => {
    const claims = entries.filter((entry): entry is EntryOf<'claim'> => entry.type === 'claim');
    return claims.flatMap((claim, place) => {
      const next = claims[place + 1];
      const until = next ? timeOf(next) : Number.POSITIVE_INFINITY;
      return (byDaemon.get(claim.daemon) ?? [])
        .filter(({ from }) => from >= timeOf(claim) && from < until)
        .flatMap((outage) => waitOf(outage, next, entries, seen));
    });
  });
}

function waitOf(
  outage: Outage,
  next: EntryOf<'claim'> | undefined,
  entries: readonly Entry[],
  seen: Seen,
): number[] {
  const { daemon, from, until } = outage;
  const before = entries.filter((entry) => timeOf(entry) <= from);
  if (outstandingIn('', before).length === 0) return [];
  const isTaken = next !== undefined && next.daemon !== daemon;
  const isTakenOver = isTaken && (until === null || timeOf(next) <= until);
  const end = isTakenOver ? timeOf(next) : until;
  if (end === null) return [];
  const begin = presentSince(end, daemon, seen);
  if (begin === null) return [];
  const waited = end - Math.max(from, begin);
  return isTakenOver || waited > WANTED_MS ? [waited] : [];
}

/** The start of the uninterrupted presence of other daemons up to that time; null: there was none at that time. */
function presentSince(end: number, daemon: string, { outages, lives }: Seen): number | null {
  const frozen = outages.filter(({ how }) => how === 'frozen');
  const spans = lives
    .filter((life) => life.daemon !== daemon)
    .flatMap((life) => lifeWithoutFreezes(life, frozen))
    .sort((a, b) => a.from - b.from);
  let stretch: { from: number; until: number } | null = null;
  for (const { from, until } of spans) {
    if (from > end) break;
    if (stretch && from <= stretch.until) stretch.until = Math.max(stretch.until, until);
    else stretch = { from, until };
  }
  return stretch && stretch.until >= end ? stretch.from : null;
}

/** The running time of a daemon without its freezes. */
function lifeWithoutFreezes(life: Life, frozen: readonly Outage[]): { from: number; until: number }[] {
  const spans: { from: number; until: number }[] = [];
  let from = life.from;
  for (const outage of frozen.filter(({ daemon }) => daemon === life.daemon)) {
    if (outage.from > from) spans.push({ from, until: outage.from });
    from = Math.max(from, outage.until ?? Number.POSITIVE_INFINITY);
  }
  return [...spans, { from, until: life.until ?? Number.POSITIVE_INFINITY }];
}

function timeOf({ createdAt }: Entry): number {
  return Date.parse(createdAt);
}
