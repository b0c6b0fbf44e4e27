import type { Entry, EntryOf, MessageEntry } from '../log/entry.ts';
import { isInAwayBlock, isShown, routedTo, type ShownEntry, traitsOf } from '../log/entry-traits.ts';
import { isWithin, remove, replace } from '../log/ranges.ts';
import { PREVIEW_LENGTH } from '../text/text.ts';

/**
 * What one agent knows of a log, and in which order it came to know it: the part of the view without wording.
 * A fold over the log; catching up costs the new entries only. Rules V1 to V14 and V17 of the view (docs/spec/view.md).
 *
 * KNOWLEDGE-1 An entry is in at most one of: the history, the open turn, `afterTurn`, `withheld` (L7).
 * KNOWLEDGE-2 The history only grows at its end. Where an entry must move, `version` changes.
 * KNOWLEDGE-3 The result depends on the entries, the agent and the policy alone (L6).
 */

/** `includeCollapsed`: show entries marked `isCollapsed`. */
export type KnowledgePolicy = { readonly includeCollapsed: boolean };

/** The agent's turn that has not ended, a waiting one included (V11). */
export interface OpenTurn {
  readonly turnId: string;
  /** Entries to answer, in log order (V2). */
  readonly trigger: readonly number[];
  /** Entries of the away block; if empty, the view has neither block nor marker (V10). */
  readonly block: readonly number[];
  /** The agent's assistant entries in this turn and the entries delivered to it, in order. */
  readonly steps: number[];
}

export class Knowledge {
  /** Number of entries folded so far. */
  length = 0;
  /** Entry indexes in the order in which the agent came to know them. */
  readonly history: number[] = [];
  /** Changes when the history changed other than by growth (KNOWLEDGE-2). */
  version = 0;
  turn: OpenTurn | null = null;
  /** By others, while the turn runs: it follows the turn (V2). */
  #afterTurn: number[] = [];
  /** Routed to this agent, and no turn has named it yet (V1). */
  readonly #withheld = new Set<number>();
  /** By others, may appear in a view of this agent, not shown yet; ascending. */
  readonly #unshown = new Set<number>();
  /** Contained in the next request of the open turn, or in one without an answer. */
  #inNextRequest: number[] = [];
  #hasSpoken = false;
  /** The part of `unshown` that the away block may list (V10). */
  readonly #awayCandidates = new Set<number>();
  /** By others, never shown and never to be shown (V17). */
  readonly #leftOut = new Set<number>();
  readonly #withoutFiles = new Set<number>();
  /** Own results shown as previews, with the length of each in code points. */
  readonly #previews = new Map<number, number>();
  /** For each assistant entry with calls: the index of each call's first result. */
  readonly #results = new Map<number, (number | undefined)[]>();

  readonly agent: string;
  readonly #policy: KnowledgePolicy;

  constructor(agent: string, policy: KnowledgePolicy) {
    this.agent = agent;
    this.#policy = policy;
  }

  /** Of the same agent, from other entries. */
  of(entries: readonly Entry[]): Knowledge {
    const knowledge = new Knowledge(this.agent, this.#policy);
    knowledge.catchUp(entries);
    return knowledge;
  }

  /** Folds the new entries. */
  catchUp(entries: readonly Entry[], to = entries.length): void {
    for (; this.length < to; this.length++) {
      const entry = entries[this.length];
      if (entry) this.#fold(entry);
    }
  }

  /** The first result of each call of an assistant entry, in call order (V7). */
  resultsOf(index: number): readonly (number | undefined)[] {
    return this.#results.get(index) ?? [];
  }

  /** Length in code points of the preview that replaces a result; undefined: the result is shown in full. */
  previewLength(index: number): number | undefined {
    return this.#previews.get(index);
  }

  /** The files of the entry are named, and not shown (V17). */
  isWithoutFiles(index: number): boolean {
    return this.#withoutFiles.has(index);
  }

  /** In no request yet: routed to this agent for a later turn (V1), or written while a turn runs (V2). */
  isWaiting(index: number): boolean {
    return this.#withheld.has(index) || this.#afterTurn.includes(index);
  }

  /** By another author, and in no request that has an answer (V3), or left out for good (V17). */
  isUnshown(index: number): boolean {
    return this.#unshown.has(index) || this.#leftOut.has(index);
  }

  /**
   * The cursor if the turn ended at index `turnEnded` after `drafts` (V14): the first entry by another author that may
   * appear in this agent's views and was not shown, else the index after the end of the turn. An own assistant entry
   * among `drafts` answers the last request, so all that it contained was shown (V3).
   */
  cursorAfter(drafts: readonly Entry[], turnEnded: number): number {
    const answered = drafts.some((entry) => this.#isOwnWords(entry));
    const shown = new Set(answered ? this.#inNextRequest : []);
    for (const index of this.#unshown) if (!shown.has(index)) return index;
    return drafts.find((entry) => this.mayContain(entry))?.index ?? turnEnded;
  }

  /** In this agent's views, now or after its turn, without being named first (V1). */
  knows(entry: Entry): boolean {
    if (this.#withheld.has(entry.index)) return false;
    return this.#isOwnWords(entry) ? !this.#isHidden(entry) : this.mayContain(entry);
  }

  /** By another author, and of a type that this agent's views may contain (V5). */
  mayContain(entry: Entry): boolean {
    if (this.#isHidden(entry)) return false;
    if (entry.author.kind === 'agent' && entry.author.id === this.agent) return false;
    const { shownTo } = traitsOf(entry);
    if (shownTo !== 'all') return shownTo === 'addressee' && routedTo(entry).includes(this.agent);
    if (entry.type !== 'message') return true;
    if (entry.role === 'tool') return false;
    return Boolean(entry.content) || entry.parts !== undefined || entry.reported !== undefined;
  }

  /** Excluded, or collapsed; a message with tool calls is never collapsed (V5). */
  #isHidden(entry: Entry): boolean {
    if (entry.includeInContext === false) return true;
    if (entry.type !== 'message' || !entry.isCollapsed || this.#policy.includeCollapsed) return false;
    return !entry.tool_calls?.length;
  }

  #fold(entry: Entry): void {
    if (entry.type === 'message') this.#foldMessage(entry);
    else if (!isShown(entry)) this.#foldHidden(entry);
    else if (this.mayContain(entry)) this.#addByOthers(entry);
  }

  #foldHidden(entry: Exclude<Entry, ShownEntry>): void {
    switch (entry.type) {
      case 'turn-started':
        if (entry.agent === this.agent) this.#applyTurnStarted(entry.turnId, entry.trigger);
        break;
      case 'message-delivered':
        if (entry.agent === this.agent) this.#applyDelivery(entry.entries);
        break;
      case 'turn-ended':
        if (entry.agent === this.agent && entry.outcome !== 'waiting') this.#closeTurn();
        break;
      case 'summary':
        if (entry.agent === this.agent) this.#applySummary(entry);
        break;
      case 'delegation-answered': // V4: the result of the call contains the answer
      case 'tool-started':
      case 'attempt-failed':
      case 'approval-requested':
      case 'approval-answered':
      case 'agent-stopped':
      case 'agent-resumed':
      case 'title-set':
      case 'feedback':
      case 'session-set':
      case 'claim':
      case 'forked':
      case 'agent-hired':
      case 'agent-dismissed':
      case 'team-changed':
        break;
      default:
        entry satisfies never;
    }
  }

  #foldMessage(entry: MessageEntry): void {
    if (this.#isOwnWords(entry)) this.#addOwnMessage(entry);
    else if (entry.role === 'tool') this.#addResult(entry);
    else if (this.mayContain(entry)) this.#addByOthers(entry);
  }

  #isOwnWords(entry: Entry): boolean {
    return (
      entry.type === 'message' &&
      entry.role === 'assistant' &&
      entry.author.kind === 'agent' &&
      entry.author.id === this.agent
    );
  }

  #addByOthers(entry: Entry): void {
    this.#unshown.add(entry.index);
    if (isInAwayBlock(entry)) this.#awayCandidates.add(entry.index);
    if (routedTo(entry).includes(this.agent))
      this.#withheld.add(entry.index); // V1
    else if (this.turn)
      this.#afterTurn.push(entry.index); // V2
    else this.history.push(entry.index);
  }

  #applyTurnStarted(turnId: string, named: readonly number[]): void {
    if (this.turn?.turnId === turnId) {
      // The same turn continues (V11): an entry it names is part of a result already, or is delivered here.
      this.#applyDelivery(named.filter((index) => this.#withheld.has(index)));
      return;
    }
    this.#closeTurn();
    const trigger = [...new Set(named)].sort((a, b) => a - b);
    for (const index of trigger) this.#removeEntry(index);
    this.#inNextRequest = this.#unshownAndKnown();
    const block = this.#hasSpoken
      ? this.#unshownHistory(trigger).filter((index) => this.#awayCandidates.has(index))
      : []; // V10
    this.turn = { turnId, trigger, block, steps: [] };
  }

  /** Everything unshown that the next request contains, also as part of a result (V4): all but the withheld (V1). */
  #unshownAndKnown(): number[] {
    return [...this.#unshown].filter((index) => !this.#withheld.has(index));
  }

  /** In history order. Walks back only until all unshown ones are found. */
  #unshownHistory(trigger: readonly number[]): number[] {
    let missing = this.#inNextRequest.length - trigger.filter((index) => this.#unshown.has(index)).length;
    const found: number[] = [];
    for (let at = this.history.length - 1; at >= 0 && missing > 0; at--) {
      const index = this.history[at];
      if (index === undefined || !this.#unshown.has(index)) continue;
      found.push(index);
      missing--;
    }
    return found.reverse();
  }

  #applyDelivery(indexes: readonly number[]): void {
    for (const index of indexes) {
      this.#removeEntry(index);
      (this.turn?.steps ?? this.history).push(index);
      this.#inNextRequest.push(index);
    }
  }

  /** An own assistant entry: everything in its request has been shown (V3). */
  #addOwnMessage(entry: MessageEntry): void {
    if (this.turn === null) this.#inNextRequest = this.#unshownAndKnown(); // imported: everything before it was known (V10)
    for (const index of this.#inNextRequest) {
      this.#unshown.delete(index);
      this.#awayCandidates.delete(index);
    }
    this.#inNextRequest = [];
    this.#hasSpoken = true;
    if (!this.#isHidden(entry)) (this.turn?.steps ?? this.history).push(entry.index);
    if (entry.tool_calls?.length)
      this.#results.set(entry.index, Array(entry.tool_calls.length).fill(undefined));
  }

  #addResult(entry: MessageEntry): void {
    const place = entry.call;
    const results = place && this.#results.get(place.index);
    if (!place || !results || place.position >= results.length) return; // an orphan, or another agent's (L18)
    if (results[place.position] !== undefined) return; // the first result counts (V7)
    results[place.position] = entry.index;
    if (!this.turn?.steps.includes(place.index)) this.version++;
    for (const index of entry.answers ?? []) {
      this.#removeEntry(index); // V4: it appears as the result of the call and nowhere else
      this.#inNextRequest.push(index);
    }
  }

  /** V17: it takes the place of the entries that it covers. Left-out entries can never be shown. */
  #applySummary(entry: EntryOf<'summary'>): void {
    // It names everything that earlier summaries named, so iterate over what is here, not over what it names.
    const isLeftOut = isWithin(entry.leftOut ?? []);
    const isCovered = isWithin(entry.entries);
    const isGone = (index: number) => isCovered(index) || isLeftOut(index);
    for (const index of [...this.#unshown, ...this.history].filter(isLeftOut)) {
      this.#leftOut.add(index);
      this.#unshown.delete(index);
      this.#awayCandidates.delete(index);
    }
    this.#inNextRequest = this.#inNextRequest.filter((index) => !isGone(index));
    for (const index of entry.shortened ?? [])
      this.#previews.set(index, entry.previewLength ?? PREVIEW_LENGTH);
    for (const index of entry.withoutFiles ?? []) this.#withoutFiles.add(index);
    if (this.turn) {
      const block = this.turn.block.filter((index) => !isLeftOut(index));
      this.turn = { ...this.turn, block };
      replace(this.turn.steps, isGone, entry.index);
    }
    replace(this.history, isGone, entry.index);
    this.version++;
  }

  #closeTurn(): void {
    if (this.turn === null) return;
    // One by one: `push(...list)` fails on very long lists.
    for (const list of [this.turn.trigger, this.turn.steps, this.#afterTurn])
      for (const index of list) this.history.push(index);
    this.turn = null;
    this.#afterTurn = [];
    this.#inNextRequest = [];
  }

  /** Removes an entry from where it is now (KNOWLEDGE-1). */
  #removeEntry(index: number): void {
    if (this.#withheld.delete(index)) return;
    if (remove(this.#afterTurn, index)) return;
    if (this.turn && remove(this.turn.steps, index)) return;
    if (remove(this.history, index)) this.version++;
  }
}
