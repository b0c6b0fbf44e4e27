import { expect } from 'vitest';
import { guard, type WireMessage } from '../../../src/agents/index.ts';
import {
  type AgentCard,
  type CallPlace,
  type ConversationRules,
  createRoster,
  type Decision,
  type Entry,
  type HiringRules,
  isStopped,
  type PhaseTable,
  type ToolRules,
  type Workflow,
  wireCallId,
} from '../../../src/conversation/index.ts';
import { type CallModel, Core, card, messagesOf, rulesFor } from './core.ts';
import { typed } from './life.ts';

/** The core of a team: agents with the tools of the conversation, and functions for their actions. */

export const TOOLS = ['handoff', 'delegate', 'ask', 'set_phase', 'look', 'write'] as const;

/** A tool's name and its arguments; a string is sent unchanged. */
export type Called = readonly [name: string, given?: unknown];

export const SHIP_IT: Workflow = {
  id: 'ship-it',
  start: 'plan',
  nodes: {
    plan: { agent: 'pm', brief: 'make a plan', outcomes: { planned: 'build' } },
    build: {
      agent: 'dev',
      brief: 'build it',
      tools: ['write'],
      outcomes: { built: 'verify', blocked: 'plan' },
    },
    verify: { agent: 'qa', brief: 'try it', outcomes: { passed: 'end', failed: 'build' } },
  },
};

/** A workflow whose nodes run side by side. */
export const SIDE: Workflow = {
  id: 'side',
  start: 'plan',
  nodes: {
    plan: { agent: 'pm', brief: 'make a plan', outcomes: { planned: ['build', 'describe'] } },
    build: {
      agent: 'dev',
      brief: 'build it',
      outcomes: { built: 'check', blocked: 'unblock', dropped: 'end' },
    },
    unblock: { agent: 'pm', brief: 'help', outcomes: { unblocked: 'check' } },
    describe: { agent: 'doc', brief: 'describe it', outcomes: { described: 'check' } },
    check: {
      agent: 'qa',
      brief: 'try it',
      after: ['build', 'describe'],
      outcomes: { passed: 'end', failed: 'plan' },
    },
  },
};

/** A workflow whose first node has the same agent and outcome as SHIP_IT's. */
export const TALK: Workflow = {
  id: 'talk',
  start: 'plan',
  nodes: { plan: { agent: 'pm', brief: 'talk it over', outcomes: { planned: 'end' } } },
};

/** The default configuration. */
const HIRING: HiringRules = {
  depth: 2,
  agents: 8,
  tokensPerConversation: null,
  usdPerConversation: null,
  unpriced: new Set(),
  people: [],
  isConfigured: () => true,
};

interface TeamOptions {
  readonly slugs?: readonly string[];
  readonly cards?: readonly AgentCard[];
  readonly hopsPerTrigger?: number;
  readonly modelCallsPerTurn?: number;
  readonly phases?: PhaseTable;
  readonly tools?: ToolRules;
  readonly workflows?: readonly Workflow[];
  readonly models?: readonly string[];
  readonly hiring?: Partial<HiringRules>;
}

function teamRules(options: TeamOptions = {}): ConversationRules {
  const slugs = options.slugs ?? ['pm', 'dev', 'qa'];
  const cards = options.cards ?? slugs.map((slug) => card(slug, { tools: TOOLS }));
  const rules = rulesFor(slugs, { cards });
  return {
    ...rules,
    roster: createRoster(cards, rules.roster.defaultAgent, options.models),
    ...(options.hiring ? { hiring: { ...HIRING, ...options.hiring } } : {}),
    phases: options.phases ?? rules.phases,
    tools: options.tools ?? rules.tools,
    limits: {
      hopsPerTrigger: options.hopsPerTrigger ?? 16,
      modelCallsPerTurn: options.modelCallsPerTurn ?? 50,
    },
    workflows: new Map(
      (options.workflows ?? [SHIP_IT, TALK, SIDE]).map((workflow) => [workflow.id, workflow]),
    ),
  };
}

export class TeamCore extends Core {
  /** The agents that it began with. */
  readonly everybody: readonly string[];

  constructor(options: TeamOptions = {}, check = true) {
    super(teamRules(options), check);
    this.everybody = [...this.rules.roster.agents.keys()];
  }

  /** The configuration has these agents from the next decision on. */
  configure(slugs: readonly string[]): void {
    const cards = slugs.map((slug) => card(slug, { tools: TOOLS }));
    Object.assign(this.rules, { roster: createRoster(cards, this.rules.roster.defaultAgent) });
  }

  /** Answers the running model call of an agent, with calls or in words only. */
  act(agent: string, words: string | null, ...calls: readonly Called[]): Decision {
    return this.actOn(this.callOf(agent), words, calls);
  }

  actOn(call: CallModel, words: string | null, calls: readonly Called[]): Decision {
    this.calls = this.calls.filter((other) => other !== call);
    const { agent, turnId } = call;
    return this.do({
      type: 'model-answered',
      agent,
      turnId,
      duration: 1,
      requestHash: 'hash',
      upTo: this.entries.length,
      answer: {
        content: words,
        toolCalls: calls.map(([name, given = {}]) => ({
          id: 'call_1', // Providers repeat ids.
          type: 'function',
          function: { name, arguments: typeof given === 'string' ? given : JSON.stringify(given) },
        })),
      },
    });
  }

  override do(command: Parameters<Core['do']>[0]): Decision {
    const decision = super.do(command);
    if (this.check) expectSound(this);
    return decision;
  }

  /** The newest result of a call of this tool. */
  result(toolName: string): string {
    const found = typed(this.entries, 'message').findLast(
      (entry) => entry.role === 'tool' && entry.toolName === toolName,
    );
    return found?.content ?? `no result of ${toolName}`;
  }

  resultsAt(index: number): (string | null)[] {
    return typed(this.entries, 'message')
      .filter((entry) => entry.call?.index === index)
      .sort((a, b) => (a.call?.position ?? 0) - (b.call?.position ?? 0))
      .map((entry) => entry.content);
  }

  outcomes(agent: string): string[] {
    return typed(this.entries, 'turn-ended')
      .filter((entry) => entry.agent === agent)
      .map((entry) => entry.outcome);
  }

  request(agent: string) {
    return messagesOf(this.view(agent)).map(({ role, content }) => [role, content]);
  }

  turn(agent: string) {
    return this.conversation.state.agents[agent]?.turn ?? null;
  }
}

/** Names the entries of a batch by type, agent and outcome. */
export function kinds(entries: readonly Entry[]): string[] {
  return entries.map((entry) =>
    entry.type === 'message' ? `${entry.role} ${entry.author.id}` : `${entry.type}${agentOf(entry)}`,
  );
}

function agentOf(entry: Entry): string {
  if (entry.type === 'turn-ended') return ` ${entry.agent} ${entry.outcome}`;
  return entry.type === 'turn-started' ? ` ${entry.agent}` : '';
}

/** Checks after each append: no work is undone, and no agent waits without a cause. */
export function expectSound(core: Core): void {
  const faults: string[] = [];
  const { state } = core.conversation;
  for (const [slug, { turn, waiting }] of Object.entries(state.agents)) {
    if (!turn) {
      if (waiting.length > 0 && !isStopped(state, slug)) faults.push(`${slug} could begin a turn`);
      continue;
    }
    const works =
      core.calls.some((call) => call.agent === slug) || core.tools.some((tool) => tool.agent === slug);
    if (works !== (turn.status === 'running')) faults.push(`${slug} is ${turn.status}; works: ${works}`);
    const asked = turn.delegatedBy;
    const asker = asked && state.agents[asked.agent]?.turn;
    const isWanted =
      asked && asker?.openCalls.some(({ place }) => wireCallId(place) === wireCallId(asked.call));
    // A delegate whose answer is no longer wanted is to be aborted.
    if (asked && works && !isWanted && !core.toAbort.has(turn.turnId))
      faults.push(`${slug} works for nobody`);
    const awaited = turn.openCalls.filter(
      (call) => call.name === 'ask' || call.name === 'delegate' || call.approval?.status === 'pending',
    );
    if (turn.status === 'waiting' && awaited.length === 0) faults.push(`${slug} waits for nothing`);
    for (const call of awaited)
      if (call.name === 'delegate' && !isPending(core, call.place)) faults.push(`nobody answers ${slug}`);
  }
  if (faults.length > 0) expect([core.entries.length, faults]).toEqual([core.entries.length, []]);
}

/** A turn or a queue contains this delegation. */
function isPending(core: Core, place: CallPlace): boolean {
  return Object.values(core.conversation.state.agents).some(({ turn, waiting }) =>
    [turn?.delegatedBy, ...waiting.map((item) => item.delegatedBy)].some(
      (delegated) => delegated?.call.index === place.index && delegated.call.position === place.position,
    ),
  );
}

/** No agent waits for itself, directly or over other agents. */
export function expectNoCycle(core: Core): void {
  const { agents } = core.conversation.state;
  const waitsFor = (asker: string) =>
    Object.entries(agents).flatMap(([slug, { turn, waiting }]) =>
      [turn?.delegatedBy, ...waiting.map((item) => item.delegatedBy)].some(
        (delegated) =>
          delegated?.agent === asker &&
          agents[asker]?.turn?.openCalls.some(
            (call) =>
              call.place.index === delegated.call.index && call.place.position === delegated.call.position,
          ),
      )
        ? [slug]
        : [],
    );
  for (const slug of Object.keys(agents)) {
    const reached = new Set(waitsFor(slug));
    for (const other of reached) for (const next of waitsFor(other)) reached.add(next);
    if (reached.has(slug)) throw new Error(`${slug} waits for itself at ${core.entries.length}`);
  }
}

/** The guard accepts the request of each running call (L13). */
export function expectGuarded(core: Core): void {
  for (const { agent } of core.calls) {
    const messages: WireMessage[] = messagesOf(core.view(agent));
    const fault = guard(messages, 0, { contextTokens: 1, maxOutputTokens: 0 });
    if (fault) throw new Error(`${agent} at ${core.entries.length}: ${fault.message}`);
  }
}

export const PERSON = { kind: 'person', id: 'operator', name: 'Operator' } as const;
