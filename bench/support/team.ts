import {
  type AgentSetup,
  type RequestSources,
  Requests,
  type ToolDefinition,
} from '../../src/agents/index.ts';
import {
  awayTokens,
  Conversation,
  type ConversationRules,
  createRoster,
  type Effect,
  type ToolCall,
} from '../../src/conversation/index.ts';
import { createMemoryStore } from '../../src/persistence/memory/index.ts';
import { createRuntime } from './runtime.ts';

/**
 * A team at work without models, tools or disks, the same in each run: people post, agents read files, hand over, ask
 * one another and answer. The core decides everything as in the daemon; only what models and tools say is made up.
 */

export type ModelCall = Extract<Effect, { type: 'call-model' }>;
type ToolRun = Extract<Effect, { type: 'run-tool' }>;

const TEXT =
  'The upload stops at the proxy when a file is large; the log says "413" and nothing else. We raise the limit, add a test ' +
  'that sends ten megabytes, and say in the manual what the limit is — the default was never written down. ';

/** Mulberry32: the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class TeamAtWork {
  readonly conversation: Conversation;
  readonly requests: Requests;
  readonly setups: ReadonlyMap<string, AgentSetup>;
  private readonly slugs: readonly string[];
  private readonly random: () => number;
  private readonly onCall: (call: ModelCall) => boolean;
  private calls: ModelCall[] = [];
  private tools: ToolRun[] = [];
  private now = Date.UTC(2026, 10, 21, 20, 39);
  private posts = 0;

  /** `onCall` gets each model call, and returns whether the model answers it. */
  constructor(agents: number, contextTokens: number, onCall: (call: ModelCall) => boolean, seed = 7) {
    this.random = randomFrom(seed);
    this.onCall = onCall;
    const { rules, sources } = teamOf(agents, contextTokens);
    this.setups = sources.agents;
    this.slugs = [...sources.agents.keys()];
    this.conversation = new Conversation(rules);
    this.requests = new Requests('team', () => sources);
  }

  do(command: Parameters<Conversation['apply']>[0]): void {
    this.now += 1_000;
    const { effects, reply } = this.conversation.apply(command, this.now);
    if (reply.kind === 'refused') throw new Error(reply.refusal.message);
    for (const effect of effects) {
      if (effect.type === 'run-tool') this.tools.push(effect);
      else if (effect.type === 'call-model' && this.onCall(effect)) this.calls.push(effect);
    }
  }

  /** One thing that happens next: a post, a result, an answer. */
  step(): void {
    const tool = this.tools.shift();
    const call = tool ? undefined : this.calls.shift();
    const atRest = !tool && !call;
    if (atRest || this.chance(0.02)) this.post();
    if (tool) this.finish(tool);
    else if (call) this.answer(call);
  }

  private post(): void {
    const number = this.posts++;
    const addressed = this.chance(0.4) ? `@${this.pick(this.slugs)} ` : '';
    this.do({
      type: 'post',
      post: {
        id: `post-${number}`,
        content: `${addressed}${number}: ${this.say(50, 800)}`,
        author: this.chance(0.8) ? { id: 'ann', name: 'Ann' } : { id: 'ben', name: 'Ben' },
        delivery: 'steer',
      },
    });
  }

  private finish({ agent, turnId, call }: ToolRun): void {
    const isLong = this.chance(0.1);
    const result = this.say(200, isLong ? 20_000 : 3_000);
    this.do({ type: 'tool-finished', agent, turnId, call, result, duration: 20 });
  }

  private answer({ agent, turnId }: ModelCall): void {
    const turn = this.conversation.state.agents[agent]?.turn;
    if (turn?.turnId !== turnId) return; // it is over
    const toolCalls = this.deeds(agent, turn.modelCalls);
    const content = toolCalls.length > 0 && this.chance(0.5) ? null : this.say(100, 1_500);
    const upTo = turn.upTo ?? this.conversation.entries.length;
    const report = { agent, turnId, duration: 900, requestHash: 'f'.repeat(64), upTo };
    this.do({ type: 'model-answered', answer: { content, toolCalls }, ...report });
  }

  private deeds(agent: string, modelCalls: number): ToolCall[] {
    const kind = this.random();
    const to = this.pick(this.slugs.filter((slug) => slug !== agent));
    if (modelCalls > 6 || kind < 0.35) return [];
    if (kind < 0.45) return [called('handoff', { to, summary: this.say(100, 600) })];
    if (kind < 0.53) return [called('delegate', { to, request: this.say(100, 600) })];
    const reads = 1 + Math.floor(this.random() * 3);
    return Array.from({ length: reads }, () =>
      called('fs_read', { path: `src/file-${Math.floor(this.random() * 1_000)}.ts` }),
    );
  }

  private say(least: number, most: number): string {
    const length = least + Math.floor(this.random() ** 2 * (most - least));
    return `${this.posts}.${this.conversation.entries.length}: ${TEXT.repeat(Math.ceil(length / TEXT.length))}`.slice(
      0,
      length,
    );
  }

  private chance(share: number): boolean {
    return this.random() < share;
  }

  private pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.random() * list.length)] as T;
  }
}

function called(name: string, given: object): ToolCall {
  return { id: 'call_1', type: 'function', function: { name, arguments: JSON.stringify(given) } };
}

const TOOLS: ReadonlyMap<string, ToolDefinition> = new Map(
  ['fs_read', 'fs_list', 'fs_search', 'fs_write', 'fs_edit', 'shell', 'recall'].map((name) => [
    name,
    {
      name,
      description: `What ${name} does, in as many words as a model needs to know when to use it and when not to.`,
      parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
      risk: 'safe',
    },
  ]),
);

/** The agents that ship, and if there are to be more, copies of the first of them. */
function teamOf(count: number, contextTokens: number): { rules: ConversationRules; sources: RequestSources } {
  const { rules, sources } = createRuntime(createMemoryStore()).team;
  const shipped = [...sources.agents.values()];
  const setups = Array.from({ length: count }, (_, at): AgentSetup => {
    const setup = shipped[at % shipped.length]!;
    const again = at < shipped.length ? '' : `-${at}`;
    const card = { ...setup.card, slug: setup.card.slug + again, name: setup.card.name + again };
    const profile = { ...setup.profile, contextTokens };
    return {
      card,
      persona: setup.persona,
      viewPolicy: { ...setup.viewPolicy, awayTokens: awayTokens(contextTokens) },
      historyLimits: setup.historyLimits,
      profile,
    };
  });
  const roster = createRoster(
    setups.map((setup) => setup.card),
    setups[0]!.card.slug,
  );
  const agents = new Map(setups.map((setup) => [setup.card.slug, setup]));
  return {
    rules: {
      ...rules,
      viewPolicy: (slug) => agents.get(slug)?.viewPolicy ?? rules.viewPolicy(slug),
      roster,
      tools: { ...rules.tools, judge: () => ({ kind: 'run', risk: 'safe' }) },
    },
    sources: { ...sources, roster, agents, tools: () => TOOLS },
  };
}
