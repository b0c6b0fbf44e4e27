import type { Entry, EntryOf } from '../../../conversation/index.ts';
import { isUnpriced } from '../../../conversation/state/usage.ts';
import { escapeHidden } from '../../../kernel/hidden.ts';
import type { Interval } from './time-scale.ts';

/**
 * A conversation over time: a lane for each agent, and one for the people.
 *
 * LANES-1 Every span starts and ends at the time of an entry; an open span ends now, or with the log.
 * LANES-2 The spans of an agent lie within its turns.
 */

type SpanKind = 'turn' | 'call' | 'tool' | 'wait' | 'approval' | 'post';

export interface Span extends Interval {
  readonly kind: SpanKind;
  readonly lane: string;
  /** The entry to show for it. */
  readonly index: number;
  readonly label: string;
  /** True: it has no end yet. */
  readonly isOpen?: boolean;
  /** Whether the turn failed. */
  readonly isFailed?: boolean;
}

/** From one lane to another: a handoff, a delegation, or its answer. */
export interface Passage {
  readonly kind: 'handoff' | 'delegation' | 'answer';
  readonly from: string;
  readonly to: string;
  readonly at: number;
  readonly index: number;
}

export interface Spending {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly usd: number;
  /** Calls whose cost is unknown. */
  readonly unpricedCalls: number;
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
}

/** The lane of all persons. */
export const PEOPLE = '';

export function lanesOf(entries: readonly Entry[]): Lanes {
  const lanes = new GrowingLanes();
  lanes.addNew(entries);
  return lanes.until(0);
}

type Open = { readonly from: number; readonly index: number; readonly label: string; readonly lane: string };
export const NOTHING_SPENT: Spending = {
  calls: 0,
  inputTokens: 0,
  outputTokens: 0,
  usd: 0,
  unpricedCalls: 0,
  modelMs: 0,
  toolMs: 0,
};

/** Grows with the log, so that an entry costs the same in a long log as in a short one. */
export class GrowingLanes {
  #added = 0;
  #newest = 0;
  readonly #spans: Span[] = [];
  readonly #passages: Passage[] = [];
  readonly #spending = new Map<string, Spending>();
  readonly #turns = new Map<string, Open>();
  readonly #waits = new Map<string, Open>();
  readonly #tools = new Map<string, Open>();
  readonly #approvals = new Map<string, Open>();
  readonly #calls = new Map<
    number,
    { readonly lane: string; readonly tools: readonly { readonly name: string }[] }
  >();

  /** Adds the entries after those that it has. */
  addNew(entries: readonly Entry[]): void {
    for (; this.#added < entries.length; this.#added++) {
      const entry = entries[this.#added];
      if (entry) this.#add(entry);
    }
    this.#newest = timeOf(entries.at(-1));
  }

  get isWorking(): boolean {
    return this.#turns.size > 0 || this.#tools.size > 0;
  }

  #add(entry: Entry): void {
    const at = timeOf(entry);
    const { index } = entry;
    switch (entry.type) {
      case 'message':
        this.#message(entry, at);
        break;
      case 'turn-started':
        this.#close(this.#waits, entry.agent, 'wait', at);
        this.#spend(entry.agent, {});
        this.#turns.set(entry.agent, { from: at, index, label: 'turn', lane: entry.agent });
        return;
      case 'turn-ended':
        this.#close(this.#turns, entry.agent, 'turn', at, entry.outcome);
        if (entry.outcome === 'waiting')
          this.#waits.set(entry.agent, { from: at, index, label: 'waits', lane: entry.agent });
        return;
      case 'tool-started':
        this.#tools.set(keyOf(entry.call), this.#toolAt(entry.call, at, index));
        return;
      case 'approval-requested':
        this.#approvals.set(entry.approvalId, {
          ...this.#toolAt(entry.call, at, index),
          label: `${escapeHidden(entry.tool ?? 'a call')} waits for a person`,
        });
        return;
      case 'approval-answered':
        this.#close(this.#approvals, entry.approvalId, 'approval', at);
        break;
      case 'handoff':
        this.#pass('handoff', entry.from, entry.to, at, index);
        break;
      case 'delegation-requested':
        this.#pass('delegation', entry.from, entry.to, at, index);
        break;
      case 'delegation-answered':
        this.#pass('answer', entry.from, entry.to, at, index);
        break;
      case 'phase-entered':
      case 'mode-entered':
      case 'message-delivered':
      case 'summary':
      case 'run-started':
      case 'node-entered':
      case 'run-ended':
      case 'agent-stopped':
      case 'agent-resumed':
      case 'title-set':
      case 'session-set':
      case 'limit-reached':
      case 'claim':
      case 'forked':
      case 'agent-hired':
      case 'agent-dismissed':
      case 'team-changed':
      case 'note':
        return;
      default:
        entry satisfies never; // or a type of a newer version
    }
  }

  /** Open spans end at this time, or at the last entry if that is later (LANES-1). */
  until(now: number): Lanes {
    const to = Math.max(now, this.#newest);
    const open = (
      [
        [this.#turns, 'turn'],
        [this.#waits, 'wait'],
        [this.#tools, 'tool'],
        [this.#approvals, 'approval'],
      ] as const
    ).flatMap(([spans, kind]) =>
      [...spans.values()].map((span): Span => ({ kind, ...span, to, isOpen: true })),
    );
    return {
      agents: [...this.#spending.keys()],
      spans: [...this.#spans, ...open],
      passages: [...this.#passages],
      spending: new Map(this.#spending),
    };
  }

  #message(entry: EntryOf<'message'>, at: number): void {
    const { index } = entry;
    if (entry.role === 'tool') {
      this.#result(entry, at);
      return;
    }
    if (entry.author.kind !== 'agent') {
      if (entry.author.kind === 'person')
        this.#spans.push({ kind: 'post', lane: PEOPLE, from: at, to: at, index, label: entry.author.name });
      return;
    }
    const lane = entry.author.id;
    this.#calls.set(index, { lane, tools: (entry.tool_calls ?? []).map((call) => call.function) });
    const took = entry.duration ?? 0;
    const began = Math.max(at - took, this.#turns.get(lane)?.from ?? at - took);
    this.#spans.push({ kind: 'call', lane, from: began, to: at, index, label: entry.model ?? 'model call' });
    const { inputTokens = 0, outputTokens = 0, usd = 0 } = entry.usage ?? {};
    const unpricedCalls = isUnpriced(entry) ? 1 : 0;
    this.#spend(lane, { calls: 1, inputTokens, outputTokens, usd, unpricedCalls, modelMs: took });
  }

  #result(entry: EntryOf<'message'>, at: number): void {
    if (!entry.call) return;
    const key = keyOf(entry.call);
    const open = this.#tools.get(key);
    if (!open) return;
    this.#close(this.#tools, key, 'tool', at);
    this.#spend(open.lane, { toolMs: entry.duration ?? at - open.from });
  }

  #toolAt(call: { readonly index: number; readonly position: number }, from: number, index: number): Open {
    const asked = this.#calls.get(call.index);
    const label = asked?.tools[call.position]?.name ?? 'tool';
    return { from, index: call.index, label, lane: asked?.lane ?? String(index) };
  }

  #close(open: Map<string, Open>, key: string, kind: SpanKind, to: number, outcome?: string): void {
    const found = open.get(key);
    if (!found) return;
    open.delete(key);
    const label = outcome ? `${found.label}: ${outcome}` : found.label;
    const isFailed = outcome === 'failed';
    this.#spans.push({
      kind,
      lane: found.lane,
      from: found.from,
      to,
      index: found.index,
      label,
      ...(isFailed && { isFailed }),
    });
  }

  #pass(kind: Passage['kind'], from: string, to: string, at: number, index: number): void {
    this.#passages.push({ kind, from, to, at, index });
  }

  #spend(agent: string, more: Partial<Spending>): void {
    this.#spending.set(agent, spentTogether(this.#spending.get(agent) ?? NOTHING_SPENT, more));
  }
}

export function spentTogether(one: Spending, other: Partial<Spending>): Spending {
  const sum = (key: keyof Spending) => [key, one[key] + (other[key] ?? 0)];
  return Object.fromEntries((Object.keys(one) as (keyof Spending)[]).map(sum));
}

function keyOf({ index, position }: { readonly index: number; readonly position: number }): string {
  return `${index}/${position}`;
}

function timeOf(entry: Entry | undefined): number {
  return entry ? Date.parse(entry.createdAt) : 0;
}
