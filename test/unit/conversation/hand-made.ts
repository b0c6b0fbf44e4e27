import type { Author, CallPlace, Entry, NewEntry } from '../../../src/conversation/index.ts';

/**
 * Logs that our own `decide` does not write, from a list of random numbers: agents side by side, delegations,
 * questions, waits, handoffs, imports, and what should not be there (late, doubled and orphaned results).
 */

const AGENTS = ['dev', 'pm', 'qa'] as const;
type Slug = (typeof AGENTS)[number];

interface OpenCall {
  readonly place: CallPlace;
  /** For another agent's or a person's answer; else the tool answers by itself. */
  readonly waitsFor?: 'person' | Slug;
  answer?: number;
}

interface Turn {
  readonly id: string;
  open: OpenCall[];
  /** A model call is out; null: tools run or the turn waits. */
  calling: boolean;
  waiting: boolean;
  /** Owed to this agent's call when the turn ends. */
  readonly delegatedBy: { agent: Slug; call: OpenCall; turnId: string } | undefined;
}

interface Mind {
  turn: Turn | null;
  /** Entries routed here that no turn has named; with who delegated them. */
  waiting: { index: number; from?: Turn['delegatedBy'] }[];
}

export class HandMade {
  readonly log: Entry[] = [];
  private readonly minds = new Map<Slug, Mind>(AGENTS.map((slug) => [slug, { turn: null, waiting: [] }]));
  private turns = 0;
  private at = 0;
  private readonly dice: readonly number[];
  private readonly importCalls: boolean;

  /** `importCalls`: imported words may have calls, whose results come at any time or never. */
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

  private mind(slug: Slug): Mind {
    return this.minds.get(slug) ?? { turn: null, waiting: [] };
  }

  private add(draft: NewEntry): number {
    const index = this.log.length;
    this.log.push({ index, id: `e${index}`, createdAt: '2026-01-01T00:00:00.000Z', ...draft } as Entry);
    return index;
  }

  private step(): void {
    const what = this.roll(16);
    const slug = this.pick(AGENTS);
    const { turn } = this.mind(slug);
    if (what < 3) this.post(slug);
    else if (what === 3) this.notice(slug);
    else if (what === 4) this.noise(slug);
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
      const question = this.mind(agent).turn?.open.find(
        (call) => call.waitsFor === 'person' && call.answer === undefined,
      );
      if (question) question.answer = index;
      else this.mind(agent).waiting.push({ index });
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
      { type: 'session-set', author, agent: slug, sessionId: 's' },
      { type: 'message', role: 'system', author, content: 'a system message', isCollapsed: true },
    ];
    this.add(this.pick(drafts));
  }

  private handoff(slug: Slug): void {
    const to = this.pick(AGENTS);
    if (to === slug) return;
    const author = this.agent(slug);
    const index = this.add({ type: 'handoff', author, from: slug, to, summary: 'over to you' });
    this.mind(to).waiting.push({ index });
  }

  /** What should not be in a log, and may be. */
  private noise(slug: Slug): void {
    const spoken = this.log.filter((entry) => entry.type === 'message' && entry.tool_calls !== undefined);
    const index = spoken.length === 0 ? 0 : this.pick(spoken).index;
    const open = [...this.minds.values()].flatMap((mind) => mind.turn?.open ?? []);
    const position = this.roll(4);
    // Not the first result of what is open: that would be a real one.
    if (open.some((call) => call.place.index === index && call.place.position === position)) return;
    const answered = this.log.some(
      (e) => e.type === 'message' && e.call?.index === index && e.call.position === position,
    );
    this.result(slug, { index, position }, answered ? [this.roll(this.log.length)] : undefined);
  }

  private begin(slug: Slug): void {
    const mind = this.mind(slug);
    if (this.roll(5) === 0) {
      this.imported(slug);
      return;
    }
    const first = mind.waiting.find((item) => item.from) ?? mind.waiting[0];
    if (!first) return;
    mind.waiting = mind.waiting.filter((item) => item !== first);
    const more = first.from || this.roll(2) === 0 ? [] : mind.waiting.filter((item) => !item.from);
    mind.waiting = mind.waiting.filter((item) => !more.includes(item));
    const turnId = `t${this.turns++}`;
    const trigger = [first, ...more].map((item) => item.index);
    this.add({ type: 'turn-started', author: this.agent(slug), turnId, agent: slug, trigger });
    mind.turn = { id: turnId, open: [], calling: true, waiting: false, delegatedBy: first.from };
  }

  /** Words without a turn, as an import brings them. */
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
      this.resume(slug, turn); // a crash in mid-call
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
    this.mind(other).waiting.push({ index, from: { agent: slug, call, turnId: turn.id } });
    return call;
  }

  private answerDelegation(slug: Slug, by: NonNullable<Turn['delegatedBy']>, answer: number): void {
    const asker = this.mind(by.agent);
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
    const mind = this.mind(slug);
    const steered = this.roll(2) === 0 ? [] : mind.waiting.filter((item) => !item.from);
    if (steered.length > 0) {
      mind.waiting = mind.waiting.filter((item) => !steered.includes(item));
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
      if (call.answer !== undefined) this.mind(slug).waiting.push({ index: call.answer });
    }
    this.ended(slug, turn, outcome);
    this.mind(slug).turn = null;
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
