import fc from 'fast-check';
import type { Author, CallPlace, Entry, NewEntry } from '../../../src/conversation/index.ts';
import { runs } from '../../support/runs.ts';

/**
 * Makes logs that `decide` does not write, from a list of random numbers: parallel agents, delegations, questions,
 * waits, handoffs, imports, and invalid entries (late, duplicate and orphaned results).
 */

const AGENTS = ['dev', 'pm', 'qa'] as const;
type Slug = (typeof AGENTS)[number];

interface OpenCall {
  readonly place: CallPlace;
  /** The call needs the answer of this agent or a person; without the field its tool answers. */
  readonly waitsFor?: 'person' | Slug;
  answer?: number;
}

interface Turn {
  readonly id: string;
  open: OpenCall[];
  /** True during a model call; false while tools run or the turn waits. */
  calling: boolean;
  waiting: boolean;
  /** The call that gets the answer of this turn. */
  readonly delegatedBy: { agent: Slug; call: OpenCall; turnId: string } | undefined;
}

interface AgentState {
  turn: Turn | null;
  /** Entries that were routed to this agent and are no trigger yet, each with its delegation. */
  waiting: { index: number; from?: Turn['delegatedBy'] }[];
}

export class HandMade {
  readonly log: Entry[] = [];
  private readonly agents = new Map<Slug, AgentState>(
    AGENTS.map((slug) => [slug, { turn: null, waiting: [] }]),
  );
  private turns = 0;
  private at = 0;
  private readonly dice: readonly number[];
  private readonly importCalls: boolean;

  /** `importCalls`: imported messages may contain calls, whose results follow at any time or never. */
  constructor(dice: readonly number[], importCalls = true) {
    this.dice = dice;
    this.importCalls = importCalls;
    while (this.at < dice.length) this.step();
  }

  private roll(sides: number): number {
    return (this.dice[this.at++] ?? 0) % sides;
  }

  private pick<T>(list: readonly T[]): T {
    return list[this.roll(list.length)] as T;
  }

  private agentState(slug: Slug): AgentState {
    return this.agents.get(slug) ?? { turn: null, waiting: [] };
  }

  private add(draft: NewEntry): number {
    const index = this.log.length;
    this.log.push({ index, id: `e${index}`, createdAt: '2026-01-01T00:00:00.000Z', ...draft } as Entry);
    return index;
  }

  private step(): void {
    const what = this.roll(16);
    const slug = this.pick(AGENTS);
    const { turn } = this.agentState(slug);
    if (what < 3) this.post(slug);
    else if (what === 3) this.notice(slug);
    else if (what === 4) this.addInvalidResult(slug);
    else if (what === 5) this.handoff(slug);
    else if (turn === null) this.begin(slug);
    else if (turn.calling) this.speak(slug, turn);
    else this.goOn(slug, turn);
  }

  private post(slug: Slug): void {
    const id = this.pick(['alice', 'bob', 'carol'] as const);
    const to = this.pick([[slug], [slug], AGENTS, undefined] as const);
    const includeInContext = this.roll(8) === 0 ? false : undefined;
    const index = this.add({
      type: 'message',
      role: 'user',
      author: { kind: 'person', id, name: id },
      content: `said ${this.log.length}`,
      ...(to && includeInContext === undefined ? { to: [...to] } : {}),
      ...(includeInContext === undefined ? {} : { includeInContext }),
    });
    if (!to || includeInContext === false) return;
    for (const agent of to) {
      const question = this.agentState(agent).turn?.open.find(
        (call) => call.waitsFor === 'person' && call.answer === undefined,
      );
      if (question) question.answer = index;
      else this.agentState(agent).waiting.push({ index });
    }
  }

  private notice(slug: Slug): void {
    const author = this.pick<Author>([
      { kind: 'system', id: 'parley', name: 'Parley' },
      { kind: 'person', id: 'alice', name: 'alice' },
      this.agent(slug),
    ]);
    const drafts: NewEntry[] = [
      { type: 'phase-entered', author, from: 'chat', to: 'plan', by: author.name },
      { type: 'mode-entered', author, from: 'agent', to: 'chat', by: author.name },
      { type: 'note', author, content: 'noted' },
      { type: 'limit-reached', author, limit: 'tokens', content: 'enough' },
      { type: 'run-started', author, runId: 'r', workflowId: 'w' },
      { type: 'node-entered', author, runId: 'r', node: 'plan', brief: 'do' },
      { type: 'run-ended', author, runId: 'r', outcome: 'end' },
      { type: 'title-set', author, title: 'never shown' },
      { type: 'feedback', author, on: 0, value: 'down', note: 'never shown' },
      { type: 'session-set', author, agent: slug, sessionId: 's', from: 0 },
      { type: 'message', role: 'system', author, content: 'a system message', isCollapsed: true },
    ];
    this.add(this.pick(drafts));
  }

  private handoff(slug: Slug): void {
    const to = this.pick(AGENTS);
    if (to === slug) return;
    const author = this.agent(slug);
    const index = this.add({ type: 'handoff', author, from: slug, to, summary: 'over to you' });
    this.agentState(to).waiting.push({ index });
  }

  /** Adds an invalid result: an orphaned or a duplicate one. */
  private addInvalidResult(slug: Slug): void {
    const spoken = this.log.filter((entry) => entry.type === 'message' && entry.tool_calls !== undefined);
    const index = spoken.length === 0 ? 0 : this.pick(spoken).index;
    const open = [...this.agents.values()].flatMap((state) => state.turn?.open ?? []);
    const position = this.roll(4);
    // The first result of an open call would be a valid one.
    if (open.some((call) => call.place.index === index && call.place.position === position)) return;
    const answered = this.log.some(
      (e) => e.type === 'message' && e.call?.index === index && e.call.position === position,
    );
    this.result(slug, { index, position }, answered ? [this.roll(this.log.length)] : undefined);
  }

  private begin(slug: Slug): void {
    const state = this.agentState(slug);
    if (this.roll(5) === 0) {
      this.imported(slug);
      return;
    }
    const first = state.waiting.find((item) => item.from) ?? state.waiting[0];
    if (!first) return;
    state.waiting = state.waiting.filter((item) => item !== first);
    const more = first.from || this.roll(2) === 0 ? [] : state.waiting.filter((item) => !item.from);
    state.waiting = state.waiting.filter((item) => !more.includes(item));
    const turnId = `t${this.turns++}`;
    const trigger = [first, ...more].map((item) => item.index);
    this.add({ type: 'turn-started', author: this.agent(slug), turnId, agent: slug, trigger });
    state.turn = { id: turnId, open: [], calling: true, waiting: false, delegatedBy: first.from };
  }

  /** Adds a message without a turn, as an import does. */
  private imported(slug: Slug): void {
    const hidden = this.roll(4);
    this.add({
      type: 'message',
      role: 'assistant',
      author: this.agent(slug),
      content: `imported ${this.log.length}`,
      ...(hidden === 2 && this.importCalls
        ? { tool_calls: [{ id: 'same', type: 'function', function: { name: 'tool', arguments: '{}' } }] }
        : {}),
      ...(hidden === 0 ? { includeInContext: false } : hidden === 1 ? { isCollapsed: true } : {}),
    });
  }

  private speak(slug: Slug, turn: Turn): void {
    const kind = this.roll(8);
    if (kind === 0) {
      this.resume(slug, turn); // A crash during the model call.
      return;
    }
    if (kind === 1) {
      this.end(slug, turn, 'aborted');
      return;
    }
    const calls = kind < 4 ? 0 : 1 + this.roll(3);
    const last = calls === 0;
    const by = turn.delegatedBy;
    const index = this.add({
      type: 'message',
      role: 'assistant',
      author: this.agent(slug),
      turnId: turn.id,
      content: last || this.roll(2) === 0 ? `words ${this.log.length}` : null,
      ...(last && by ? { to: [by.agent] } : {}),
      ...(last
        ? {}
        : {
            tool_calls: Array.from({ length: calls }, () => ({
              id: 'same',
              type: 'function' as const,
              function: { name: 'tool', arguments: '{}' },
            })),
          }),
    });
    turn.calling = false;
    if (last) {
      this.end(slug, turn, 'completed');
      if (by) this.answerDelegation(slug, by, index);
      return;
    }
    turn.open = Array.from({ length: calls }, (_, position) => this.open(slug, turn, { index, position }));
  }

  private open(slug: Slug, turn: Turn, place: CallPlace): OpenCall {
    const other = this.pick(AGENTS);
    const kind = this.roll(4);
    if (kind === 0) return { place, waitsFor: 'person' };
    if (kind === 1 || other === slug) return { place };
    const author = this.agent(slug);
    const index = this.add({
      type: 'delegation-requested',
      author,
      from: slug,
      to: other,
      request: 'do this',
      call: place,
    });
    const call: OpenCall = { place, waitsFor: other };
    this.agentState(other).waiting.push({ index, from: { agent: slug, call, turnId: turn.id } });
    return call;
  }

  private answerDelegation(slug: Slug, by: NonNullable<Turn['delegatedBy']>, answer: number): void {
    const asker = this.agentState(by.agent);
    const late = asker.turn?.id !== by.turnId || !asker.turn.open.includes(by.call);
    this.add({
      type: 'delegation-answered',
      author: this.agent(slug),
      from: slug,
      to: by.agent,
      answers: [answer],
      late,
    });
    if (late) asker.waiting.push({ index: answer });
    else by.call.answer = answer;
  }

  private goOn(slug: Slug, turn: Turn): void {
    const ready = turn.open.filter((call) => call.waitsFor === undefined || call.answer !== undefined);
    if (turn.open.length > 0 && ready.length === 0) {
      if (this.roll(6) === 0) {
        this.end(slug, turn, 'aborted');
        return;
      }
      if (turn.waiting) return;
      turn.waiting = true;
      this.ended(slug, turn, 'waiting');
      return;
    }
    if (turn.open.length > 0) {
      const call = this.pick(ready);
      const answers = call.answer === undefined ? undefined : [call.answer];
      const before = turn.waiting && this.roll(2) === 0;
      if (before) this.resume(slug, turn, answers);
      this.result(slug, call.place, answers);
      if (turn.waiting && !before) this.resume(slug, turn, answers);
      turn.waiting = false;
      turn.open = turn.open.filter((open) => open !== call);
    }
    if (turn.open.length > 0) return;
    const state = this.agentState(slug);
    const steered = this.roll(2) === 0 ? [] : state.waiting.filter((item) => !item.from);
    if (steered.length > 0) {
      state.waiting = state.waiting.filter((item) => !steered.includes(item));
      const entries = steered.map((item) => item.index);
      this.add({
        type: 'message-delivered',
        author: this.agent(slug),
        turnId: turn.id,
        agent: slug,
        entries,
      });
    }
    turn.calling = true;
  }

  private resume(slug: Slug, turn: Turn, answers?: number[]): void {
    const first = this.log.find((entry) => entry.type === 'turn-started' && entry.turnId === turn.id);
    const trigger = answers ?? (first?.type === 'turn-started' ? first.trigger : []);
    this.add({
      type: 'turn-started',
      author: this.agent(slug),
      turnId: turn.id,
      agent: slug,
      trigger,
      resumed: true,
    });
  }

  private end(slug: Slug, turn: Turn, outcome: 'completed' | 'aborted'): void {
    for (const call of turn.open) {
      this.result(slug, call.place);
      if (call.answer !== undefined) this.agentState(slug).waiting.push({ index: call.answer });
    }
    this.ended(slug, turn, outcome);
    this.agentState(slug).turn = null;
  }

  private ended(slug: Slug, turn: Turn, outcome: 'completed' | 'aborted' | 'waiting'): void {
    this.add({
      type: 'turn-ended',
      author: this.agent(slug),
      turnId: turn.id,
      agent: slug,
      outcome,
      lastProcessedMessageIndex: 0,
    });
  }

  private result(slug: Slug, call: CallPlace, answers?: number[]): void {
    const author = this.agent(slug);
    this.add({
      type: 'message',
      role: 'tool',
      author,
      content: 'result',
      call,
      ...(answers ? { answers } : {}),
    });
  }

  private agent(slug: Slug): Author {
    return { kind: 'agent', id: slug, name: slug };
  }
}

const dice = fc.array(fc.nat({ max: 4_799 }), { minLength: 20, maxLength: 260, size: 'max' });

/** Checks random logs, once for each agent. */
export function handMadeLogs(
  numRuns: number,
  check: (log: Entry[], agent: string) => void,
  importCalls = true,
): void {
  fc.assert(
    fc.property(dice, (numbers) => {
      const { log } = new HandMade(numbers, importCalls);
      for (const agent of AGENTS) check(log, agent);
    }),
    { numRuns: runs(numRuns) },
  );
}
