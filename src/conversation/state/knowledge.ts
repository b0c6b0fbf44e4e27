import type { CallPlace, Entry, EntryOf, MessageEntry } from '../log/entry.ts';
import { isWithin } from '../log/ranges.ts';
import { PREVIEW_LENGTH } from '../text/text.ts';

/**
 * What one agent has come to know, and in which order: the half of the view that needs no words.
 * A fold over the log; catching up costs the new entries only. Rules V1 to V14 and V17 of the view (docs/spec/view.md).
 *
 * KNOWLEDGE-1 An entry stands in at most one of: the history, the open turn, `later`, `withheld` (L7).
 * KNOWLEDGE-2 The history only grows at its end; where that is impossible (an entry moves), `version` changes.
 * KNOWLEDGE-3 Nothing here depends on anything but the entries, the agent and the policy (L6).
 */

export interface KnowledgePolicy {
  /** Show entries marked `isCollapsed`. */
  readonly includeCollapsed: boolean;
}

/** The agent's turn that has not ended (a waiting one included: V11). */
export interface OpenTurn {
  readonly turnId: string;
  /** Entries to answer, in log order (V2). */
  readonly trigger: readonly number[];
  /** Entries of the away block; empty: neither block nor marker (V10). */
  readonly block: readonly number[];
  /** What the turn did, in order: own assistant entries and what was delivered to it. */
  readonly steps: number[];
}

export class Knowledge {
  /** Entries folded so far. */
  upTo = 0;
  /** Entry indexes in the order in which the agent came to know them. */
  readonly history: number[] = [];
  /** Changes when the history changed otherwise than by growing (KNOWLEDGE-2). */
  version = 0;
  turn: OpenTurn | null = null;
  /** Said by others while the turn runs: stands after it (V2). */
  private later: number[] = [];
  /** Routed to this agent and not named yet (V1). */
  private readonly withheld = new Set<number>();
  /** By others, able to stand in a view of this agent, not shown yet; ascending. */
  private readonly unshown = new Set<number>();
  /** Held by the next request of the open turn, or by one that nobody has answered yet. */
  private offered: number[] = [];
  /** An assistant entry of this agent stands in the log. */
  private hasSpoken = false;
  /** The unshown ones that the away block may list: messages and handoffs, not other notices (V10). */
  private readonly said = new Set<number>();
  /** By others, never shown, and never to be (V17). */
  private readonly leftOut = new Set<number>();
  /** Own results that are shown as previews, and of how many code points. */
  private readonly previews = new Map<number, number>();
  /** For each assistant entry with calls: the index of each call's first result. */
  private readonly results = new Map<number, (number | undefined)[]>();

  readonly agent: string;
  private readonly policy: KnowledgePolicy;

  constructor(agent: string, policy: KnowledgePolicy) {
    this.agent = agent;
    this.policy = policy;
  }

  /** Folds what is new in `entries`. */
  catchUp(entries: readonly Entry[], to = entries.length): void {
    for (; this.upTo < to; this.upTo++) {
      const entry = entries[this.upTo];
      if (entry) this.fold(entry);
    }
  }

  /** The first result of each call of an assistant entry, in call order (V7). */
  resultsOf(index: number): readonly (number | undefined)[] {
    return this.results.get(index) ?? [];
  }

  /** Of a result of which a reduction made a preview: what is shown of it, in code points; undefined: all of it. */
  previewLength(index: number): number | undefined {
    return this.previews.get(index);
  }

  /** Said already, and in no request yet: routed to this agent for a later turn (V1), or said while one runs (V2). */
  isWaiting(index: number): boolean {
    return this.withheld.has(index) || this.later.includes(index);
  }

  /** By someone else, and held by no request that was answered (V3), or left out for good (V17). */
  isUnshown(index: number): boolean {
    return this.unshown.has(index) || this.leftOut.has(index);
  }

  /**
   * The cursor, were the turn to end at index `turnEnded` after `drafts` (V14): the first entry by someone
   * else that can stand in this agent's views and was not shown, else the place after the end of the turn.
   * `answered`: an assistant entry in `drafts` answers the last request, so all that it held was shown (V3).
   */
  cursorAfter(drafts: readonly Entry[], turnEnded: number): number {
    const answered = drafts.some((entry) => this.isOwnWords(entry));
    const shown = new Set(answered ? this.offered : []);
    for (const index of this.unshown) if (!shown.has(index)) return index;
    return drafts.find((entry) => this.canStand(entry))?.index ?? turnEnded;
  }

  /** In this agent's views, now or once its turn is over, without having to be named first (V1). */
  knows(entry: Entry): boolean {
    if (this.withheld.has(entry.index)) return false;
    return this.isOwnWords(entry) ? !this.isHidden(entry) : this.canStand(entry);
  }

  /** By someone else, and of a kind that this agent's views may contain (V5). */
  canStand(entry: Entry): boolean {
    if (this.isHidden(entry)) return false;
    if (entry.author.kind === 'agent' && entry.author.id === this.agent) return false;
    switch (entry.type) {
      case 'message':
        return entry.role !== 'tool' && typeof entry.content === 'string' && entry.content !== '';
      case 'phase-entered':
      case 'mode-entered':
      case 'handoff':
      case 'run-started':
      case 'node-entered':
      case 'run-ended':
      case 'limit-reached':
      case 'note':
        return true;
      case 'delegation-requested':
        return entry.to === this.agent;
      default:
        return false;
    }
  }

  /** Marked as not to be shown, or folded away; a tool protocol is never folded away (V5). */
  private isHidden(entry: Entry): boolean {
    if (entry.includeInContext === false) return true;
    if (entry.type !== 'message' || !entry.isCollapsed || this.policy.includeCollapsed) return false;
    return !entry.tool_calls?.length;
  }

  private fold(entry: Entry): void {
    if (entry.type === 'message') this.foldMessage(entry);
    else if (entry.type === 'turn-started' && entry.agent === this.agent)
      this.startTurn(entry.turnId, entry.trigger);
    else if (entry.type === 'message-delivered' && entry.agent === this.agent) this.deliver(entry.entries);
    else if (entry.type === 'turn-ended' && entry.agent === this.agent && entry.outcome !== 'waiting')
      this.closeTurn();
    else if (entry.type === 'summary' && entry.agent === this.agent) this.reduce(entry);
    else if (this.canStand(entry)) this.hear(entry);
  }

  private foldMessage(entry: MessageEntry): void {
    if (this.isOwnWords(entry)) this.speak(entry);
    else if (entry.role === 'tool') this.addResult(entry);
    else if (this.canStand(entry)) this.hear(entry);
  }

  private isOwnWords(entry: Entry): boolean {
    return (
      entry.type === 'message' &&
      entry.role === 'assistant' &&
      entry.author.kind === 'agent' &&
      entry.author.id === this.agent
    );
  }

  private hear(entry: Entry): void {
    this.unshown.add(entry.index);
    if (entry.type === 'message' || entry.type === 'handoff') this.said.add(entry.index);
    if (routedTo(entry).includes(this.agent))
      this.withheld.add(entry.index); // V1
    else if (this.turn)
      this.later.push(entry.index); // V2
    else this.history.push(entry.index);
  }

  private startTurn(turnId: string, named: readonly number[]): void {
    if (this.turn?.turnId === turnId) {
      // The same turn goes on (V11): what it names is a result already, or is delivered here.
      this.deliver(named.filter((index) => this.withheld.has(index)));
      return;
    }
    this.closeTurn();
    const trigger = [...new Set(named)].sort((a, b) => a - b);
    for (const index of trigger) this.take(index);
    this.offered = this.unshownAndKnown();
    const block = this.hasSpoken ? this.unshownHistory(trigger).filter((index) => this.said.has(index)) : []; // V10
    this.turn = { turnId, trigger, block, steps: [] };
  }

  /** What the next request holds for the first time, be it behind a result (V4): all but what is withheld (V1). */
  private unshownAndKnown(): number[] {
    return [...this.unshown].filter((index) => !this.withheld.has(index));
  }

  /** In the order of the history; walks back only as far as there are unshown ones. */
  private unshownHistory(trigger: readonly number[]): number[] {
    let missing = this.offered.length - trigger.filter((index) => this.unshown.has(index)).length;
    const found: number[] = [];
    for (let at = this.history.length - 1; at >= 0 && missing > 0; at--) {
      const index = this.history[at];
      if (index === undefined || !this.unshown.has(index)) continue;
      found.push(index);
      missing--;
    }
    return found.reverse();
  }

  private deliver(indexes: readonly number[]): void {
    for (const index of indexes) {
      this.take(index);
      this.place(index);
      this.offered.push(index);
    }
  }

  /** An own assistant entry: what its request held has now been shown (V3). */
  private speak(entry: MessageEntry): void {
    if (this.turn === null) this.offered = this.unshownAndKnown(); // imported words: all before them was known (V10)
    for (const index of this.offered) {
      this.unshown.delete(index);
      this.said.delete(index);
    }
    this.offered = [];
    this.hasSpoken = true;
    if (!this.isHidden(entry)) this.place(entry.index);
    if (entry.tool_calls?.length)
      this.results.set(entry.index, Array(entry.tool_calls.length).fill(undefined));
  }

  private addResult(entry: MessageEntry): void {
    const place = entry.call;
    const results = place && this.results.get(place.index);
    if (!place || !results || place.position >= results.length) return; // an orphan, or another agent's (L18)
    if (results[place.position] !== undefined) return; // the first result counts (V7)
    results[place.position] = entry.index;
    if (!this.turn?.steps.includes(place.index)) this.version++;
    for (const index of entry.answers ?? []) {
      this.take(index); // V4: it stands behind the call and nowhere else
      this.offered.push(index);
    }
  }

  /** V17: it replaces in its place what it covers; what is left out is as if it could never be shown. */
  private reduce(entry: EntryOf<'summary'>): void {
    // It names all that earlier ones named: what is looked at is what stands here, not what it names.
    const isLeftOut = isWithin(entry.leftOut ?? []);
    const isCovered = isWithin(entry.entries);
    const isGone = (index: number) => isCovered(index) || isLeftOut(index);
    for (const index of [...this.unshown, ...this.history].filter(isLeftOut)) {
      this.leftOut.add(index);
      this.unshown.delete(index);
      this.said.delete(index);
    }
    this.offered = this.offered.filter((index) => !isGone(index));
    for (const index of entry.shortened ?? [])
      this.previews.set(index, entry.previewLength ?? PREVIEW_LENGTH);
    if (this.turn) {
      const block = this.turn.block.filter((index) => !isLeftOut(index));
      this.turn = { ...this.turn, block };
      replace(this.turn.steps, isGone, entry.index);
    }
    replace(this.history, isGone, entry.index);
    this.version++; // KNOWLEDGE-2
  }

  private closeTurn(): void {
    if (this.turn === null) return;
    // One by one: there may be more than a call takes arguments.
    for (const list of [this.turn.trigger, this.turn.steps, this.later])
      for (const index of list) this.history.push(index);
    this.turn = null;
    this.later = [];
    this.offered = [];
  }

  private place(index: number): void {
    if (this.turn) this.turn.steps.push(index);
    else this.history.push(index);
  }

  /** Takes an entry out of wherever it waits or stands (KNOWLEDGE-1). */
  private take(index: number): void {
    if (this.withheld.delete(index)) return;
    if (remove(this.later, index)) return;
    if (this.turn && remove(this.turn.steps, index)) return;
    if (remove(this.history, index)) this.version++; // KNOWLEDGE-2
  }
}

/** The agents that an entry is routed to (V1). */
export function routedTo(entry: Entry): readonly string[] {
  if (entry.type === 'message' || entry.type === 'node-entered') return entry.to ?? [];
  if (entry.type === 'handoff' || entry.type === 'delegation-requested') return [entry.to];
  return [];
}

function remove(list: number[], index: number): boolean {
  const at = list.lastIndexOf(index);
  if (at < 0) return false;
  list.splice(at, 1);
  return true;
}

/** Puts `by` where the first of those stood that are gone, and takes the others out. */
function replace(list: number[], isGone: (index: number) => boolean, by: number): void {
  const at = list.findIndex(isGone);
  if (at < 0) return;
  const kept = list.slice(at).filter((index) => !isGone(index));
  list.splice(at, list.length - at, by, ...kept);
}

/** The id on the wire of a call (V7, L10). */
export function wireCallId(place: CallPlace): string {
  return `c${place.index}_${place.position}`;
}
