import {
  type AgentSetup,
  type ModelProfile,
  type ModelRequest,
  PLAIN_FORM,
  type RequestSources,
} from '../../../src/agents/index.ts';
import type { RequestParts } from '../../../src/agents/requests/assemble.ts';
import {
  type AgentCard,
  AgentView,
  createRoster,
  DEFAULT_VIEW_POLICY,
  type Entry,
} from '../../../src/conversation/index.ts';

/** Minimal agents, texts and logs for the tests of requests. */

export const PROFILE: ModelProfile = {
  name: 'default',
  contextTokens: 100_000,
  maxOutputTokens: 1_000,
  fields: { model: 'fake-model', stream: true, max_tokens: 1_000 },
  headers: { 'x-session': 's1' },
  session: null,
  price: null,
  form: PLAIN_FORM,
  toolFields: {},
  strictTools: false,
};

export function cardOf(slug: string, more: Partial<AgentCard> = {}): AgentCard {
  const name = slug[0]?.toUpperCase() + slug.slice(1);
  return {
    slug,
    name,
    description: `does ${slug}`,
    phases: [],
    modes: [],
    runtime: 'local',
    tools: [],
    ...more,
  };
}

export const NO_HISTORY_LIMITS = { maxMessages: null, maxChars: null };

export function sourcesOf(...slugs: string[]): RequestSources {
  const cards = slugs.map((slug) => cardOf(slug));
  const agents = cards.map((card): [string, AgentSetup] => [
    card.slug,
    {
      card,
      persona: `Persona of {{name}}.`,
      profile: PROFILE,
      viewPolicy: DEFAULT_VIEW_POLICY,
      historyLimits: NO_HISTORY_LIMITS,
    },
  ]);
  return {
    roster: createRoster(cards, slugs[0] ?? 'pm'),
    prompts: { baseChat: 'Base rules.', baseRun: 'Run rules.', toolPolicy: 'Tool policy.' },
    workflows: new Map(),
    tools: () => new Map(),
    availability: () => ({ rules: [], otherwise: 'runs' }),
    agents: new Map(agents),
  };
}

/** Writes a log by hand: each call appends one entry and returns its index. */
export class Log {
  readonly entries: Entry[] = [];
  private turns = 0;

  /** A log in which pm begins a turn for this post. */
  static begun(content: string): Log {
    const log = new Log();
    log.start('pm', log.person(content));
    return log;
  }

  person(content: string, to: string[] = ['pm'], name = 'Ann'): number {
    const author = { kind: 'person', id: name.toLowerCase(), name };
    return this.add({ type: 'message', role: 'user', content, to, delivery: 'steer', author });
  }

  start(agent: string, ...trigger: number[]): string {
    const turnId = `turn-${this.turns++}`;
    const upTo = this.entries.length + 1;
    this.add({ type: 'turn-started', turnId, agent, trigger, upTo, author: this.agent(agent) });
    return turnId;
  }

  /** Appends the answer and the end of the turn, and returns the index of the answer. */
  answer(agent: string, turnId: string, content: string): number {
    const author = this.agent(agent);
    const index = this.add({
      type: 'message',
      role: 'assistant',
      turnId,
      content,
      author,
      upTo: this.entries.length,
    });
    const lastProcessedMessageIndex = this.entries.length + 1;
    this.add({ type: 'turn-ended', turnId, agent, outcome: 'completed', lastProcessedMessageIndex, author });
    return index;
  }

  enterMode(mode: string): number {
    return this.add({ type: 'mode-entered', from: 'agent', to: mode, by: 'Ann', author: this.agent('pm') });
  }

  private agent(slug: string) {
    return { kind: 'agent', id: slug, name: cardOf(slug).name };
  }

  add(fields: object): number {
    const index = this.entries.length;
    const entry = { index, id: `id-${index}`, createdAt: '2026-01-01T00:00:00.000Z', ...fields };
    this.entries.push(entry as Entry);
    return index;
  }
}

/** The same list for each request, as the cache of an assembler compares it by identity. */
const NO_TOOLS: RequestParts['tools'] = [];

export function partsOf(entries: readonly Entry[], more: Partial<RequestParts> = {}): RequestParts {
  return {
    conversation: 'demo',
    agent: 'pm',
    turnId: 'turn',
    prefix: 'Be good.',
    runContext: [],
    view: new AgentView(entries, 'pm', DEFAULT_VIEW_POLICY).build(),
    tools: NO_TOOLS,
    tokenRatio: 1,
    profile: PROFILE,
    sessionId: null,
    ...more,
  };
}

/** A request of the agent dev without messages and tools. */
export const modelRequest = (more: Partial<ModelRequest>): ModelRequest => ({
  ...{ conversation: 'demo', agent: 'dev', turnId: 't1', messages: [], tools: [] },
  ...{ body: [], hash: 'h', headers: {} },
  ...more,
});
