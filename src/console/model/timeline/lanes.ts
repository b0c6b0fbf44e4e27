import type { CallPlace, Entry, EntryOf } from '../../../conversation/index.ts';
import { wireCallId } from '../../../conversation/log/call-id.ts';
import { NOTHING_USED, type Used, usedWith } from '../../../conversation/state/usage.ts';
import { escapeHidden } from '../../../kernel/hidden.ts';
import type { AsideType, ControlEntry } from '../thread/blocks.ts';
import type { Interval } from './time-scale.ts';

/**
 * A conversation over time: a lane for each agent, and one for the people.
 *
 * LANES-1 Every span starts and ends at the time of an entry; an open span ends now, or with the log; in a copy, with what was copied.
 * LANES-2 The spans of an agent lie within its turns.
 */

type SpanKind = 'turn' | 'call' | 'tool' | 'wait' | 'approval' | 'post';

export interface Span extends Interval {
  readonly kind: SpanKind;
  readonly lane: string;
  readonly index: number;
  readonly label: string;
  readonly isOpen?: boolean;
  readonly isFailed?: boolean;
}

/** From one lane to another: a handoff, a delegation, or its answer. */
export interface Passage {
  readonly kind: 'handoff' | 'delegation-requested' | 'delegation-answered';
  readonly from: string;
  readonly to: string;
  readonly at: number;
  readonly index: number;
}

export interface Spending extends Used {
  /** Milliseconds. */
  readonly modelMs: number;
  readonly toolMs: number;
}

export interface Lanes {
  /** Agents in the order of their first entry. */
  readonly agents: readonly string[];
  readonly spans: readonly Span[];
  readonly passages: readonly Passage[];
  readonly spending: ReadonlyMap<string, Spending>;
  readonly isWorking: boolean;
}

export const PEOPLE = '';

type Open = Pick<Span, 'kind' | 'from' | 'index' | 'label' | 'lane'>;
export const NOTHING_SPENT: Spending = { ...NOTHING_USED, modelMs: 0, toolMs: 0 };

/** Open spans end with the log. */
export function lanesOf(entries: readonly Entry[]): Lanes {
  const lanes = new Fold();
  for (const entry of entries) lanes.add(entry, Date.parse(entry.createdAt));
  const newest = Date.parse(entries.at(-1)?.createdAt ?? '') || 0;
  const open = [...lanes.open.values()];
  const lasting = open.map((span): Span => ({ ...span, to: newest, isOpen: true }));
  const { spending, passages } = lanes;
  const isWorking = open.some(({ kind }) => kind === 'turn' || kind === 'tool');
  return { agents: [...spending.keys()], spans: [...lanes.spans, ...lasting], passages, spending, isWorking };
}

class Fold {
  readonly spans: Span[] = [];
  readonly passages: Passage[] = [];
  readonly spending = new Map<string, Spending>();
  /** By kind and what it is of: an agent, a call, an approval. */
  readonly open = new Map<string, Open>();
  readonly #callers = new Map<number, EntryOf<'message'>>();
  #timeBefore = 0;

  add(entry: Entry, at: number): void {
    const { index } = entry;
    switch (entry.type) {
      case 'message':
        this.#message(entry, at);
        break;
      case 'turn-started':
        this.#end('wait', entry.agent, at);
        this.#spend(entry.agent, {});
        // One that is open continues after a crash.
        if (!this.open.has(`turn ${entry.agent}`))
          this.#begin(entry.agent, { kind: 'turn', from: at, index, label: 'turn', lane: entry.agent });
        break;
      case 'turn-ended':
        this.#end('turn', entry.agent, at, entry.outcome);
        if (entry.outcome === 'waiting')
          this.#begin(entry.agent, { kind: 'wait', from: at, index, label: 'waits', lane: entry.agent });
        else this.#endAll(at, entry.agent); // a turn may be stopped while it waits
        break;
      case 'forked':
        this.#endAll(this.#timeBefore);
        break;
      case 'tool-started':
        this.#begin(wireCallId(entry.call), this.#callAt(entry.call, 'tool', at));
        break;
      case 'approval-requested': {
        const label = `${escapeHidden(entry.tool ?? 'a call')} waits for a person`;
        this.#begin(entry.approvalId, { ...this.#callAt(entry.call, 'approval', at), label });
        break;
      }
      case 'approval-answered':
        this.#end('approval', entry.approvalId, at);
        break;
      case 'handoff':
      case 'delegation-requested':
      case 'delegation-answered':
        this.passages.push({ kind: entry.type, from: entry.from, to: entry.to, at, index });
        break;
      default: // or of a newer version
        entry satisfies ControlEntry | Extract<Entry, { type: AsideType | 'title-set' | 'feedback' }>;
    }
    this.#timeBefore = at;
  }

  #message(entry: EntryOf<'message'>, at: number): void {
    const { index, author, call, duration } = entry;
    if (entry.role === 'tool') {
      const ran = call && this.#end('tool', wireCallId(call), at);
      if (ran) this.#spend(ran.lane, { toolMs: duration ?? at - ran.from });
    } else if (author.kind === 'person') {
      this.spans.push({ kind: 'post', lane: PEOPLE, from: at, to: at, index, label: author.name });
    } else if (author.kind === 'agent') {
      const { id: lane } = author;
      this.#callers.set(index, entry);
      const began = at - (duration ?? 0);
      const from = Math.max(began, this.open.get(`turn ${lane}`)?.from ?? began); // LANES-2
      this.spans.push({ kind: 'call', lane, from, to: at, index, label: entry.model ?? 'model call' });
      this.#spend(lane, { ...usedWith(NOTHING_USED, entry), calls: 1, modelMs: at - began });
    }
  }

  #callAt(call: CallPlace, kind: SpanKind, from: number): Open {
    const asked = this.#callers.get(call.index);
    const label = asked?.tool_calls?.[call.position]?.function.name ?? 'tool';
    return { kind, from, index: call.index, label, lane: asked?.author.id ?? '?' };
  }

  #begin(of: string, span: Open): void {
    this.open.set(`${span.kind} ${of}`, span);
  }

  #end(kind: SpanKind, of: string, to: number, outcome?: string): Open | undefined {
    const found = this.open.get(`${kind} ${of}`);
    if (!found) return undefined;
    this.open.delete(`${kind} ${of}`);
    const label = outcome ? `${found.label}: ${outcome}` : found.label;
    this.spans.push({ ...found, to, label, ...(outcome === 'failed' && { isFailed: true }) });
    return found;
  }

  /** Of one agent, or of all. */
  #endAll(to: number, agent?: string): void {
    for (const [of, { kind, lane }] of this.open)
      if (lane === (agent ?? lane)) this.#end(kind, of.slice(kind.length + 1), to);
  }

  #spend(agent: string, more: Partial<Spending>): void {
    this.spending.set(agent, spentTogether(this.spending.get(agent) ?? NOTHING_SPENT, more));
  }
}

/** Open spans end at this time, or with the log if that is later (LANES-1). */
export function lanesUntil(lanes: Lanes, now: number): Lanes {
  const spans = lanes.spans.map((span) => (span.isOpen ? { ...span, to: Math.max(now, span.to) } : span));
  return { ...lanes, spans };
}

export function spentTogether(one: Spending, other: Partial<Spending>): Spending {
  const sum = (key: keyof Spending) => [key, one[key] + (other[key] ?? 0)];
  return Object.fromEntries((Object.keys(one) as (keyof Spending)[]).map(sum));
}
