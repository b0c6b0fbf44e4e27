import {
  type CallPlace,
  type Entry,
  type EntryOf,
  type MessageEntry,
  turnInputOf,
  wireCallId,
} from '../conversation/index.ts';
import { parseTraceparent, sha256Of, type TraceContext } from '../kernel/index.ts';

/**
 * Which work caused which, in one log.
 *
 * LINEAGE-1  A post of a person is the root of a trace, or a child of the span that its publisher named. Each turn is a child
 *            of what triggered it: a post, or the call that handed over, delegated or completed a node.
 * LINEAGE-2  The ids of a copied entry (a fork) are those of the conversation in which it was made.
 */

/** Null: the span is a root. */
export type Placed = TraceContext & { readonly parentId: string | null };

export class Lineage {
  readonly #conversation: string;
  readonly #entries: readonly Entry[];
  readonly #starts = new Map<string, EntryOf<'turn-started'>>();
  readonly #ends = new Map<string, number>();
  readonly #waits = new Map<string, number>();
  /** By turn: the messages that it processed. */
  readonly #inputs = new Map<string, number[]>();
  /** By message: the turns that processed it, with their agents. */
  readonly #takers = new Map<number, { readonly agent: string; readonly turnId: string }[]>();
  readonly #toolStarts = new Map<string, EntryOf<'tool-started'>>();
  readonly #requests = new Map<string, EntryOf<'approval-requested'>>();
  /** By call: its arguments, if a person changed them. */
  readonly #changed = new Map<string, string>();

  constructor(conversation: string, entries: readonly Entry[]) {
    this.#conversation = conversation;
    this.#entries = entries;
    for (const entry of entries) this.#index(entry);
  }

  start(turnId: string): EntryOf<'turn-started'> | undefined {
    return this.#starts.get(turnId);
  }

  /** How often it began to wait. */
  waits(turnId: string): number {
    return this.#waits.get(turnId) ?? 0;
  }

  toolStart(place: CallPlace): EntryOf<'tool-started'> | undefined {
    return this.#toolStarts.get(wireCallId(place));
  }

  approvalRequest(approvalId: string): EntryOf<'approval-requested'> | undefined {
    return this.#requests.get(approvalId);
  }

  changedArguments(place: CallPlace): string | undefined {
    return this.#changed.get(wireCallId(place));
  }

  /** The posts that this end of a turn answers: each of their agents has ended a turn that processed them. */
  postsAnsweredBy({ turnId, index }: EntryOf<'turn-ended'>): MessageEntry[] {
    return [...new Set(this.#inputs.get(turnId))].flatMap((input) => {
      const entry = this.#entries[input];
      return entry && isPost(entry) && this.#answeredAt(entry) === index ? [entry] : [];
    });
  }

  /** LINEAGE-1. `links`: its further triggers. */
  turn(turnId: string): Placed & { readonly links: readonly TraceContext[] } {
    const spanId = spanIdOf('turn', turnId);
    const trigger = this.#starts.get(turnId)?.trigger ?? [];
    const [cause, ...links] = trigger.flatMap((index) => this.#cause(this.#entries[index]) ?? []);
    if (!cause) return { traceId: traceIdOf(turnId), spanId, parentId: null, links: [] };
    return { traceId: cause.traceId, spanId, parentId: cause.spanId, links };
  }

  /** The `traceparent` of the post that caused the turn, for daemons that record no spans. Null: it has none. */
  caller(turnId: string): string | null {
    for (const index of this.#starts.get(turnId)?.trigger ?? []) {
      const entry = this.#entries[index];
      const maker = this.#maker(entry);
      const found =
        entry?.type === 'message' ? (entry.traceparent ?? null) : maker && this.caller(maker.turnId);
      if (found !== null) return found;
    }
    return null;
  }

  post({ id, createdAt, copiedFrom, traceparent }: MessageEntry): Placed {
    const names = [copiedFrom ?? this.#conversation, id, createdAt];
    const spanId = spanIdOf('post', ...names);
    const caller = parseTraceparent(traceparent ?? '');
    if (caller) return { traceId: caller.traceId, spanId, parentId: caller.spanId };
    return { traceId: traceIdOf(...names), spanId, parentId: null };
  }

  modelCall(turnId: string, requestHash: string): Placed {
    const { traceId, spanId: parentId } = this.turn(turnId);
    return { traceId, parentId, spanId: spanIdOf('model', turnId, requestHash) };
  }

  toolCall(turnId: string, place: CallPlace): Placed {
    const { traceId, spanId: parentId } = this.turn(turnId);
    const asked = this.#entries[place.index];
    const names = [asked?.copiedFrom ?? this.#conversation, asked?.id ?? '', String(place.position)];
    return { traceId, parentId, spanId: spanIdOf('tool', ...names) };
  }

  #index(entry: Entry): void {
    const input = turnInputOf(entry);
    if (input) this.#process(input.turnId, input.agent, input.messages);
    if (entry.type === 'turn-started') setOnce(this.#starts, entry.turnId, entry);
    else if (entry.type === 'tool-started') setOnce(this.#toolStarts, wireCallId(entry.call), entry);
    else if (entry.type === 'approval-requested') setOnce(this.#requests, entry.approvalId, entry);
    else if (entry.type === 'approval-answered' && entry.call && entry.arguments !== undefined)
      this.#changed.set(wireCallId(entry.call), entry.arguments);
    else if (entry.type === 'turn-ended' && entry.outcome === 'waiting')
      this.#waits.set(entry.turnId, this.waits(entry.turnId) + 1);
    else if (entry.type === 'turn-ended') this.#ends.set(entry.turnId, entry.index);
  }

  #process(turnId: string, agent: string, messages: readonly number[]): void {
    this.#inputs.set(turnId, [...(this.#inputs.get(turnId) ?? []), ...messages]);
    for (const index of messages)
      this.#takers.set(index, [...(this.#takers.get(index) ?? []), { agent, turnId }]);
  }

  /** Infinite: not yet. */
  #answeredAt({ index, to = [] }: MessageEntry): number {
    const takers = this.#takers.get(index) ?? [];
    const endOf = (turnId: string) => this.#ends.get(turnId) ?? Number.POSITIVE_INFINITY;
    const ends = to.map((slug) =>
      Math.min(...takers.flatMap(({ agent, turnId }) => (agent === slug ? [endOf(turnId)] : []))),
    );
    return Math.max(...ends);
  }

  /** The span of a trigger. Null: none. */
  #cause(entry: Entry | undefined): TraceContext | null {
    if (entry?.type === 'message') return this.post(entry);
    const { turnId, call } = this.#maker(entry) ?? {};
    if (turnId === undefined) return null;
    return call ? this.toolCall(turnId, call) : this.turn(turnId);
  }

  /** The turn that made a trigger, and its call. Null: none. */
  #maker(entry: Entry | undefined): { readonly turnId: string; readonly call: CallPlace | undefined } | null {
    if (entry === undefined) return null;
    const before = this.#entries.slice(0, entry.index).findLast(({ type }) => type !== 'node-entered');
    const by =
      entry.type === 'node-entered' && before?.type === 'message' // the result of `complete_node`
        ? before
        : entry.type === 'handoff' || entry.type === 'delegation-requested'
          ? entry
          : null;
    const start = by?.turnId === undefined ? undefined : this.#starts.get(by.turnId);
    // A turn that starts later cannot be the cause, so that a damaged log gives no endless chain.
    return start && start.index < entry.index ? { turnId: start.turnId, call: by?.call } : null;
  }
}

/** Messages without a `traceparent` started the turn, so `Lineage.caller` is null. A quick check, before a lineage is made. */
export function hasNoCaller(turnId: string, entries: readonly Entry[]): boolean {
  const start = entries.findLast((entry) => entry.type === 'turn-started' && entry.turnId === turnId);
  if (start?.type !== 'turn-started' || start.resumed) return false;
  return start.trigger.every((index) => {
    const entry = entries[index];
    return entry?.type === 'message' && entry.traceparent === undefined;
  });
}

/** A message that a person posted, not one of a copied or imported history. */
export function isPost(entry: Entry): entry is MessageEntry {
  if (entry.type !== 'message' || entry.role !== 'user') return false;
  return entry.copiedFrom === undefined && entry.author.kind === 'person' && entry.meta?.seeded !== true;
}

function setOnce<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  if (!map.has(key)) map.set(key, value);
}

/**
 * TRACE-IDS-1  An id is the beginning of a SHA-256 over names that the log contains: every export of a log, by any daemon,
 *              at any time, has the same ids.
 * TRACE-IDS-2  An id exists before its span ends: it depends on what is in the log when the work begins.
 */
type Thing = 'trace' | 'post' | 'turn' | 'model' | 'tool' | 'approval' | 'summary';

function traceIdOf(...names: readonly string[]): string {
  return hashOf('trace', names).slice(0, 32);
}

export function spanIdOf(thing: Exclude<Thing, 'trace'>, ...names: readonly string[]): string {
  return hashOf(thing, names).slice(0, 16);
}

function hashOf(thing: Thing, names: readonly string[]): string {
  return sha256Of(JSON.stringify([thing, ...names]));
}
