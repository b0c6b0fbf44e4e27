import { expect } from 'vitest';
import {
  type AgentCard,
  type Answer,
  BUILT_IN_PHASES,
  type Command,
  Conversation,
  type ConversationRules,
  createRoster,
  DEFAULT_VIEW_POLICY,
  type Decision,
  type Effect,
  type Entry,
  type EntryOf,
  NO_LIMIT,
  type Post,
  planReduction,
  type View,
  type ViewMessage,
  type ViewPart,
  type ViewPolicy,
  viewOf,
  windowLimit,
} from '../../../src/conversation/index.ts';
import { expectEqual } from '../../support/expect-equal.ts';
import { expectedCursor, expectedReduced } from '../../support/view-oracle.ts';

/** The pure core of one conversation, with its log, that carries out its effects without models, tools or disks. */

export const SLUGS = ['pm', 'dev', 'dev-ops', 'qa'] as const;

export function card(slug: string, more: Partial<AgentCard> = {}): AgentCard {
  const name = slug[0]?.toUpperCase() + slug.slice(1);
  return { slug, name, description: '', phases: [], modes: [], runtime: 'local', tools: [], ...more };
}

export function rulesFor(
  slugs: readonly string[] = SLUGS,
  more: { cards?: readonly AgentCard[]; modelCallsPerTurn?: number; policy?: Partial<ViewPolicy> } = {},
): ConversationRules {
  let ids = 0;
  return {
    roster: createRoster(more.cards ?? slugs.map((slug) => card(slug)), slugs[0] ?? 'pm'),
    phases: BUILT_IN_PHASES,
    limits: { hopsPerTrigger: 16, modelCallsPerTurn: more.modelCallsPerTurn ?? 50 },
    workflows: new Map(),
    tools: { judge: () => ({ kind: 'run', risk: 'safe' }), fingerprint: (text) => text },
    ownRequests: true,
    newId: () => `made-${ids++}`,
    viewPolicy: () => ({ ...DEFAULT_VIEW_POLICY, ...more.policy }),
  };
}

export type CallModel = Extract<Effect, { type: 'call-model' }>;
export type AuditedResult = NonNullable<Extract<Command, { type: 'recover' }>['audited']>[number];
export type RunTool = Extract<Effect, { type: 'run-tool' }>;

/** The types of entries; of a message, its role. */
export function typesOf(entries: readonly Entry[]): string[] {
  return entries.map((entry) => (entry.type === 'message' ? entry.role : entry.type));
}

/** The whole request after the prefix. */
export function messagesOf(view: View): ViewMessage[] {
  return partsOf(view).map((part) => part.message);
}

export function partsOf(view: View): ViewPart[] {
  return [...view.history, ...view.tail];
}

export function withoutBlock(view: View): ViewMessage[] {
  return partsOf(view)
    .filter((part) => part.kind !== 'away-block' && part.kind !== 'marker')
    .map((part) => part.message);
}

/** Not the result of a tool that a person's post brought. */
function isOfAPerson(entry: Entry | undefined): boolean {
  return entry?.type === 'message' && entry.role === 'user' && entry.author.kind === 'person';
}

/** Entry indexes by the kind of their part, in the terms of the oracle. */
function placesOf(view: View, entries: readonly Entry[]) {
  /** V19: the files of an entry whose text is a message of its own. */
  const isFiles = ({ message, entries: [first = -1] }: ViewPart) =>
    message.files !== undefined && message.content === '' && !isOfAPerson(entries[first]);
  const own = (part: ViewPart) => part.message.role !== 'tool' && !isFiles(part);
  const of = (kind: ViewPart['kind'], parts: readonly ViewPart[], instead = kind) =>
    parts
      .filter((part) => (part.kind === kind || part.kind === instead) && own(part))
      .flatMap((part) => part.entries);
  return {
    history: of('history', view.history, 'summary'),
    block: of('away-block', view.tail),
    trigger: of('trigger', view.tail),
    steps: of('turn', view.tail, 'summary'),
  };
}

/** The view and the oracle agree, results included. */
export function expectAsRuled(
  entries: readonly Entry[],
  agent: string,
  view: View,
  includeCollapsed = false,
): void {
  const { history, block, trigger, steps, results } = expectedReduced(
    entries,
    agent,
    entries.length,
    includeCollapsed,
  );
  expectEqual(placesOf(view, entries), { history, block, trigger, steps });
  // V7: each result follows its call directly, in call order.
  const wire = messagesOf(view);
  const expectedTools = [...history, ...trigger, ...steps].flatMap((index) =>
    (results.get(index) ?? []).map((result, position) => ({ id: `c${index}_${position}`, result })),
  );
  const tools = partsOf(view).filter((part) => part.message.role === 'tool');
  expectEqual(
    tools.map((part) => ({ id: part.message.tool_call_id, result: part.entries[0] })),
    expectedTools,
  );
  wire.forEach((message, at) => {
    message.tool_calls?.forEach((call, position) => {
      expectEqual(wire[at + 1 + position]?.tool_call_id, call.id);
    });
  });
}

/** V14 on a whole log: every `turn-ended` carries the cursor that the rule gives. */
export function expectCursors(entries: readonly Entry[]): void {
  for (const entry of entries)
    if (entry.type === 'turn-ended')
      expectEqual(
        [entry.index, entry.lastProcessedMessageIndex],
        [entry.index, expectedCursor(entries, entry.agent, entry.index)],
      );
}

interface Request {
  readonly agent: string;
  readonly turnId: string;
  readonly upTo: number;
  readonly modelCall: number;
  readonly messages: string[];
  readonly all: string;
}

export class Core {
  readonly rules: ConversationRules;
  conversation: Conversation;
  calls: CallModel[] = [];
  tools: RunTool[] = [];
  toAbort = new Set<string>();
  /** Answers for the servers of running calls. */
  answered: Extract<Effect, { type: 'answer-tool' }>[] = [];
  requests: Request[] = [];
  /** Log lengths at which a batch ended. */
  boundaries: number[] = [0];
  now = 1_700_000_000_000;
  /** Numbers generated texts within one core, so that a seed reproduces alone. */
  words = 0;
  /** The largest view in tokens; null is unlimited. */
  window: number | null = null;
  readonly check: boolean;

  constructor(rules: ConversationRules = rulesFor(), check = true) {
    this.rules = rules;
    this.conversation = new Conversation(rules);
    this.check = check;
  }

  get entries(): readonly Entry[] {
    return this.conversation.entries;
  }

  do(command: Command): Decision {
    const decision = this.conversation.apply(command, this.now++);
    if (decision.entries.length > 0) this.boundaries.push(this.entries.length);
    if (command.type.startsWith('model-') && 'turnId' in command && decision.reply.kind === 'done')
      this.calls = this.calls.filter((call) => call.turnId !== command.turnId);
    for (const effect of decision.effects) this.start(effect);
    this.forgetFinished();
    return decision;
  }

  post(content: string, more: Partial<Post> & { by?: string } = {}): Decision {
    const { by = 'alice', ...fields } = more;
    const id = fields.id ?? `post-${this.words++}`;
    const name = by[0]?.toUpperCase() + by.slice(1);
    return this.do({
      type: 'post',
      post: { author: { id: by, name }, delivery: 'steer', ...fields, id, content },
    });
  }

  posted(...post: Parameters<Core['post']>): this {
    this.post(...post);
    return this;
  }

  private start(effect: Effect): void {
    if (effect.type === 'abort-turn') this.toAbort.add(effect.turnId);
    else if (effect.type === 'run-tool') this.tools.push(effect);
    else if (effect.type === 'answer-tool') this.answered.push(effect);
    else this.ask(effect);
  }

  /** Checks the request of a model call. */
  protected ask(effect: CallModel): void {
    if (this.reduced(effect)) return;
    // V11: one turn at a time, with one model call at a time.
    if (this.check)
      expectEqual(
        this.calls.filter((call) => call.agent === effect.agent),
        [],
      );
    this.calls.push(effect);
    if (this.check) this.checkRequest(effect);
  }

  /** A view that is too large for the window is reduced, and then the model is called again. */
  private reduced({ agent, turnId }: CallModel): boolean {
    if (this.window === null) return false;
    const agentView = this.conversation.view(agent);
    const { history, tail } = agentView.build();
    const plan = planReduction({
      ...{
        entries: this.entries,
        history,
        tail,
        tokensOf: (message) => 10 + (message.content?.length ?? 0) / 4,
      },
      isUnshown: (index) => agentView.knowledge.isUnshown(index),
      mayContain: (entry) => agentView.knowledge.mayContain(entry),
      limits: {
        tokens: windowLimit(this.window, 0),
        windowTokens: this.window,
        messages: NO_LIMIT,
        chars: NO_LIMIT,
      },
      write: () => `s${this.words};`,
    });
    if (!plan) return false;
    const words = { content: `s${this.words++};`, writtenBy: 'extract', tokensBefore: 0 } as const;
    const reduction = { ...plan, ...words };
    const command = { type: 'reduce-view', agent, turnId, upTo: this.entries.length, reduction } as const;
    Core.prototype.do.call(this, command); // The other effects of the decision have not begun.
    return true;
  }

  private forgetFinished(): void {
    const running = (turnId: string, agent: string) =>
      this.conversation.state.agents[agent]?.turn?.turnId === turnId;
    this.calls = this.calls.filter((call) => running(call.turnId, call.agent));
    this.tools = this.tools.filter((tool) => running(tool.turnId, tool.agent));
  }

  view(agent: string): View {
    return this.conversation.view(agent).build();
  }

  private checkRequest({ agent, turnId, key }: CallModel): void {
    const view = this.view(agent);
    const upTo = this.entries.length;
    const policy = this.rules.viewPolicy(agent);
    expectAsRuled(this.entries, agent, view, policy.includeCollapsed);
    expectEqual(key < upTo, true);
    const all = JSON.stringify(messagesOf(view));
    expectEqual(JSON.stringify(messagesOf(viewOf(this.entries, agent, policy))), all);
    expectEqual(messagesOf(view).at(-1)?.role === 'assistant', false);
    const modelCall = this.conversation.state.agents[agent]?.turn?.modelCalls ?? -1;
    if (modelCall === 0) expectEqual(view.tail.at(-1)?.kind, 'trigger');
    const messages = withoutBlock(view).map((message) => JSON.stringify(message));
    const earlier = this.requests.findLast(
      (request) => request.agent === agent && !this.wasReduced(agent, request.upTo),
    );
    if (earlier) {
      // V9, and with it all earlier requests.
      const prefix = messages.slice(0, earlier.messages.length).join('\n');
      if (prefix !== earlier.messages.join('\n')) expect(messages).toEqual(earlier.messages);
      const same = earlier.turnId === turnId && earlier.modelCall === modelCall;
      if (same) expectEqual(all, earlier.all); // L6: repeated after a crash, with the same bytes.
    }
    this.requests.push({ agent, turnId, upTo, modelCall, messages, all });
  }

  private wasReduced(agent: string, since: number): boolean {
    return this.entries.slice(since).some((entry) => entry.type === 'summary' && entry.agent === agent);
  }

  report(call: CallModel) {
    this.calls = this.calls.filter((other) => other !== call);
    const { agent, turnId } = call;
    return { agent, turnId, duration: 1, requestHash: 'hash', upTo: this.entries.length };
  }

  answer(
    call: CallModel,
    content: string | null = `w${this.words++};`,
    tools: readonly string[] = [],
    finishReason?: string,
  ): Decision {
    const toolCalls: Answer['toolCalls'] = tools.map((name) => ({
      id: 'call_1', // Providers repeat ids.
      type: 'function',
      function: { name, arguments: '{}' },
    }));
    return this.do({
      type: 'model-answered',
      ...this.report(call),
      answer: { content, toolCalls, finishReason },
    });
  }

  fail(call: CallModel, partial = ''): Decision {
    return this.do({
      type: 'model-failed',
      ...this.report(call),
      code: 'TIMEOUT',
      message: 'too late',
      partial,
    });
  }

  /** The next of endless candidates is asked. */
  attempt(call: CallModel): Decision {
    const { candidate } = this.conversation.state.agents[call.agent]?.turn ?? {};
    const { requestHash, ...report } = this.report(call);
    return this.do({
      type: 'attempt-failed',
      ...report,
      ...{ candidate: candidate ?? { model: 'm' }, next: { model: `${candidate?.model ?? 'm'}+` } },
      ...{ code: 'TIMEOUT', message: 'too late', requestHash },
    });
  }

  abort(call: CallModel, partial = ''): Decision {
    return this.do({ type: 'model-aborted', ...this.report(call), partial });
  }

  finish(tool: RunTool, result = `w${this.words++};`): Decision {
    this.tools = this.tools.filter((other) => other !== tool);
    const { agent, turnId, call } = tool;
    return this.do({ type: 'tool-finished', agent, turnId, call, result, duration: 1 });
  }

  last<T extends Entry['type']>(type: T): EntryOf<T> {
    const found = this.entries.findLast((entry) => entry.type === type);
    if (!found) throw new Error(`no ${type}`);
    return found as unknown as EntryOf<T>;
  }

  callOf(agent: string): CallModel {
    const found = this.calls.find((call) => call.agent === agent);
    if (!found) throw new Error(`no model call of ${agent} runs`);
    return found;
  }

  /** Crashes: unappended entries and running work are lost, and the next process opens the log. */
  crash(lostBatches = 0, audited: AuditedResult[] = []): Decision {
    const at = Math.max(0, this.boundaries.length - 1 - lostBatches);
    const length = this.boundaries[at] ?? 0;
    this.boundaries = this.boundaries.slice(0, at + 1);
    this.requests = this.requests.filter((request) => request.upTo <= length);
    this.calls = [];
    this.tools = [];
    this.toAbort.clear();
    const log = JSON.parse(JSON.stringify(this.entries.slice(0, length))) as Entry[];
    this.conversation = new Conversation(this.rules, log);
    return this.do({ type: 'recover', audited });
  }

  /** Completes all running work. */
  drain(): void {
    for (let steps = 0; this.calls.length + this.tools.length > 0; steps++) {
      if (steps > 2_000) throw new Error('the work of this conversation never ends');
      const tool = this.tools[0];
      const call = this.calls[0];
      if (tool) this.finish(tool);
      else if (call) this.answer(call);
    }
  }
}
