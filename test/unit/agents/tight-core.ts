import { expect } from 'vitest';
import { messageTokens } from '../../../src/agents/dialect-port.ts';
import {
  type Assembled,
  explain,
  guard,
  type HistoryLimits,
  type PlannedReduction,
  type RequestSources,
  Requests,
  reductionEntry,
  sealed,
  type WireMessage,
} from '../../../src/agents/index.ts';
import {
  awayTokens,
  type Entry,
  type EntryOf,
  expand,
  type ViewPart,
} from '../../../src/conversation/index.ts';
import { expectedView } from '../../support/view-oracle.ts';
import { type CallModel, Core, partsOf, rulesFor } from '../conversation/core.ts';
import { typed } from '../conversation/life.ts';
import { sourcesOf } from './support.ts';

/** A core whose models have a window: a view that is too large is reduced before the model call. */

const SLUGS = ['pm', 'dev'];

interface Sent {
  readonly agent: string;
  readonly assembled: Assembled;
  readonly parts: readonly ViewPart[];
  /** The log at that time: a crash may lose its end. */
  readonly log: readonly Entry[];
}

export class TightCore extends Core {
  readonly sent: Sent[] = [];
  readonly refused: string[] = [];
  /** For each refused request: the tokens of what is never taken and of the shortest summary. */
  readonly tokensRefused: number[] = [];
  readonly reductions: PlannedReduction[] = [];
  private readonly length: number;
  private readonly contextTokens: number;
  private readonly sources: RequestSources;
  private readonly requestsOf: Requests;

  constructor(window: number, limits: HistoryLimits, length: number) {
    super(rulesFor(SLUGS, { policy: { awayTokens: awayTokens(window) } }), false);
    this.length = length;
    this.contextTokens = window;
    const sources = sourcesOf(...SLUGS);
    this.sources = sources;
    for (const [slug, setup] of sources.agents) {
      const profile = { ...setup.profile, contextTokens: window, maxOutputTokens: Math.floor(window / 8) };
      const viewPolicy = { ...setup.viewPolicy, awayTokens: awayTokens(window) };
      const tight = { ...setup, profile, viewPolicy, historyLimits: limits };
      (sources.agents as Map<string, typeof setup>).set(slug, tight);
    }
    this.requestsOf = new Requests('demo', () => sources);
  }

  get room(): number {
    return this.contextTokens - Math.floor(this.contextTokens / 8);
  }

  override post(content: string, more = {}) {
    return super.post(this.long(content), more);
  }

  override answer(call: CallModel, content: string | null = null, tools: readonly string[] = []) {
    return super.answer(call, content ?? this.long('said;'), tools);
  }

  override finish(tool: Parameters<Core['finish']>[0]) {
    return super.finish(tool, this.long('result;'));
  }

  /** A text of any length up to the limit of this core, the same in each run. */
  private long(start: string): string {
    const length = (this.entries.length * 7_919) % this.length;
    return `${start} ${'words and words '.repeat(Math.ceil(length / 16)).slice(0, length)}`;
  }

  /** As the daemon does for a model call: reduces, refuses or sends the request. */
  protected override ask(effect: CallModel): void {
    const { agent, turnId } = effect;
    const next = this.requestsOf.draft(this.conversation, agent, turnId);
    if (!next) return;
    const prepared = { ...sealed(next.draft, new Map()), reduction: next.reduction };
    const upTo = this.entries.length;
    if (prepared.reduction) {
      this.reductions.push(prepared.reduction);
      expect(this.reductions.length).toBeLessThan(2_000); // Reductions end.
      const reduction = reductionEntry(prepared.reduction, {
        content: prepared.reduction.write(null),
        writtenBy: 'extract',
      });
      this.do({ type: 'reduce-view', agent, turnId, upTo, reduction });
      return;
    }
    const parts = partsOf(this.view(agent));
    if (prepared.fault) {
      this.tokensRefused.push(leastTokens(prepared, this.room));
      const report = { agent, turnId, duration: 0, requestHash: '', upTo };
      const { code, message } = prepared.fault;
      const { entries } = this.do({ type: 'model-failed', code, message, partial: '', ...report });
      this.refused.push(
        JSON.stringify(entries.map((entry) => (entry.type === 'message' ? entry.content : ''))).replaceAll(
          '\\"',
          '"',
        ),
      );
      return;
    }
    this.sent.push({ agent, assembled: prepared, parts, log: this.entries.slice() });
    this.calls.push(effect);
  }

  expectAllSentFit(): void {
    for (const { assembled } of this.sent) {
      expect(assembled.tokens).toBeLessThanOrEqual(this.room);
      const window = { contextTokens: this.contextTokens, maxOutputTokens: this.contextTokens - this.room };
      expect(guard(assembled.request.messages, assembled.tokens, window)).toBeNull();
    }
  }

  expectRefusalsSaid(): void {
    for (const said of this.refused) expect(said).toContain('LLM_ERROR {"code":"CONTEXT_STILL_TOO_LARGE"');
    for (const tokens of this.tokensRefused) expect(tokens).toBeGreaterThan(this.room);
  }

  /** V17, as the oracle states it. */
  expectLawfulSummaries(): void {
    for (const summary of typed(this.entries, 'summary')) {
      const before = expectedView(this.entries, summary.agent, summary.index);
      const covered = expand(summary.entries);
      const open = [...before.trigger, ...before.steps.slice(-1)];
      expect(covered.filter((index) => before.unshown.includes(index))).toEqual([]);
      expect(covered.filter((index) => open.includes(index))).toEqual([]);
      expect(Math.max(-1, ...covered)).toBeLessThan(summary.index);
      this.expectOldest(summary, before.history, before.steps);
      for (const [index, results] of before.results)
        if (covered.includes(index)) expect(results.filter((at) => at && !covered.includes(at))).toEqual([]);
    }
  }

  /** The covered entries are the oldest that remain. */
  private expectOldest(summary: EntryOf<'summary'>, history: number[], steps: number[]): void {
    const gone = new Set([...this.takenBefore(summary), ...expand(summary.leftOut ?? [])]);
    const covered = new Set(expand(summary.entries));
    for (const standing of [history, steps]) {
      const left = standing.filter((index) => !gone.has(index));
      const flags = left.map((index) => covered.has(index));
      expect(flags.lastIndexOf(true)).toBeLessThan(
        flags.includes(false) ? flags.indexOf(false) : flags.length,
      );
    }
  }

  private takenBefore(summary: EntryOf<'summary'>): number[] {
    return typed(this.entries.slice(0, summary.index), 'summary')
      .filter((earlier) => earlier.agent === summary.agent)
      .flatMap((earlier) => expand(earlier.leftOut ?? []));
  }

  expectAllAccountedFor(): void {
    for (const { agent, parts, log } of this.sent) {
      const { history, trigger, steps } = expectedView(log, agent);
      const shown = new Set(parts.flatMap((part) => [...part.entries]));
      const inView = parts.filter((part) => part.kind === 'summary').flatMap((part) => [...part.entries]);
      const summed = inView.flatMap((index) => summedUp(log[index]));
      const leftOut = typed(log, 'summary').flatMap((entry) =>
        entry.agent === agent ? expand(entry.leftOut ?? []) : [],
      );
      const known = new Set([...shown, ...summed, ...leftOut]);
      expect([...history, ...trigger, ...steps].filter((index) => !known.has(index))).toEqual([]);
      expect(trigger.filter((index) => !shown.has(index))).toEqual([]);
      this.expectNewestOfAPerson({ agent, parts, log }, [...history, ...trigger, ...steps], new Set(leftOut));
    }
  }

  /** The newest message of a person is never dropped: the view or a summary quotes it. */
  private expectNewestOfAPerson(
    { agent, parts, log }: Pick<Sent, 'agent' | 'parts' | 'log'>,
    known: readonly number[],
    leftOut: ReadonlySet<number>,
  ): void {
    const newest = known
      .filter((index) => !leftOut.has(index))
      .map((index) => log[index])
      .findLast((entry) => entry?.type === 'message' && entry.author.kind === 'person');
    if (newest?.type !== 'message') return;
    const text = parts.map((part) => part.message.content ?? '').join('\n');
    // In full, or as far as the window has space beside what is never taken.
    const begins = `[${newest.index}] ${newest.author.name}:\n> ${newest.content?.slice(0, 8)}`;
    const isCut = text.includes(begins) && text.includes(`(entry ${newest.index} continues)`);
    expect([agent, isCut || text.includes(newest.content ?? '')]).toEqual([agent, true]);
  }

  /** The explanation has the bytes that were sent, and lists every entry that the rules show this agent. */
  expectExplained(): void {
    for (const { agent, assembled, parts, log } of this.sent) {
      const explained = explain(log, { conversation: 'demo', agent }, { live: this.sources });
      if (!explained.ok) throw new Error(explained.refusal.message);
      const { report } = explained.explanation;
      expect(report.requestHash).toBe(assembled.request.hash);
      const { history, trigger, steps, results } = expectedView(log, agent);
      const standing = [...history, ...trigger, ...steps];
      const behind = [...results]
        .filter(([asked]) => standing.includes(asked))
        .flatMap(([, found]) => found.flatMap((index) => (index === undefined ? [] : [index])));
      const answered = behind.flatMap((index) => answersOf(log[index]));
      const known = new Set([...standing, ...behind, ...answered]);
      const accounted = [...report.included, ...report.left_out];
      const own = accounted.filter((index) => log[index]?.type !== 'summary');
      expect(own.sort((a, b) => a - b)).toEqual([...known].sort((a, b) => a - b)); // None of them twice.
      expect(report.left_out_as.filter(({ how }) => how === 'empty')).toEqual([]);
      expect(report.waiting.filter((index) => known.has(index))).toEqual([]);
      const isReduced = parts.some((part) => part.kind === 'summary') || report.shortened.length > 0;
      const said = isReduced ? 'reduced' : 'not_needed';
      expect([said, 'no_effect']).toContain(report.status);
      const tokens = Object.values(report.tokens_by_group).reduce((sum, one) => sum + one, 0);
      expect(tokens).toBe(report.tokens);
    }
  }

  expectSettled(): void {
    for (const agent of SLUGS) {
      const turn = this.conversation.state.agents[agent]?.turn;
      if (!turn) continue;
      const prepared = this.requestsOf.draft(this.conversation, agent, turn.turnId);
      expect(prepared?.reduction ?? null).toBeNull();
    }
  }
}

/**
 * L13: the tokens of what is never taken, plus the smaller of the older messages and a short summary, for the history
 * and for the turn. A refused request needs more than the available tokens; an equal number fits.
 */
function leastTokens({ parts, tokens }: Assembled, room: number): number {
  expect(tokens).toBeGreaterThan(room);
  const trigger = parts.findLastIndex(({ kind }) => kind === 'trigger');
  const asked = parts.findLastIndex(({ kind, message }) => kind === 'turn' && message.role === 'assistant');
  const fresh = asked < 0 ? trigger + 1 : asked;
  const newestOfAPerson = parts.findLastIndex(({ message }) => message.role === 'user');
  const isTaken = (at: number) => TAKEN.has(parts[at]?.kind ?? '') && at < fresh;
  const least = parts.filter((_, at) => !isTaken(at)).map(({ message }) => messageTokens(pointer(message)));
  const shortest = (inTurn: boolean) => {
    const places = [...parts.keys()].filter((at) => isTaken(at) && at > trigger === inTurn);
    const stands = sum(places.flatMap((at) => messageTokens(parts[at]?.message as WireMessage)));
    return Math.min(stands, SHORT_SUMMARY + (places.includes(newestOfAPerson) ? SHORT_QUOTATION : 0));
  };
  return sum(least) + shortest(false) + shortest(true);
}

const sum = (tokens: readonly number[]): number => tokens.reduce((all, one) => all + one, 0);

function pointer(message: WireMessage): WireMessage {
  return message.role === 'tool' ? { ...message, content: message.content?.slice(0, 60) ?? null } : message;
}

const TAKEN = new Set(['history', 'summary', 'turn']);
/** Tokens of the shortest planned summary, its message included, and of the quotation in it. */
const SHORT_SUMMARY = 90;
const SHORT_QUOTATION = 60;

function answersOf(entry: Entry | undefined): readonly number[] {
  return entry?.type === 'message' ? (entry.answers ?? []) : [];
}

function summedUp(entry: Entry | undefined): number[] {
  return entry?.type === 'summary' ? expand(entry.entries) : [];
}
