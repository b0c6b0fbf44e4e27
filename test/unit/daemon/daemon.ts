import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import {
  FileCache,
  type HistoryLimits,
  LivePublisher,
  type Model,
  type ModelAnswer,
  type ModelOutcome,
  type ModelProfile,
  type ModelRequest,
  type PartialAnswer,
  type Summariser,
  type Toolbox,
} from '../../../src/agents/index.ts';
import type { Delivery } from '../../../src/bus/index.ts';
import type { PublisherConfig } from '../../../src/config/index.ts';
import {
  type AgentCard,
  BUILT_IN_PHASES,
  type Command,
  createRoster,
  DEFAULT_VIEW_POLICY,
  type Entry,
  type LiveChunk,
  pendingApprovals,
  type ToolRules,
  type Workflow,
} from '../../../src/conversation/index.ts';
import { Api } from '../../../src/daemon/api/api.ts';
import { Erasure } from '../../../src/daemon/api/erasure.ts';
import { Search } from '../../../src/daemon/api/search.ts';
import { type ClaimHolder, ClaimingOwner } from '../../../src/daemon/cluster/claims.ts';
import { IngressProgress } from '../../../src/daemon/conversations/ingress-progress.ts';
import { SoleOwner } from '../../../src/daemon/conversations/ownership.ts';
import { Workers } from '../../../src/daemon/conversations/workers.ts';
import { Files } from '../../../src/daemon/files/files.ts';
import { Posts } from '../../../src/daemon/ingress/posts.ts';
import { Metrics } from '../../../src/daemon/observe/metrics.ts';
import { createTelemetry, type TelemetrySink } from '../../../src/daemon/observe/telemetry.ts';
import type { Runtime } from '../../../src/daemon/runtime.ts';
import { Definitions } from '../../../src/daemon/team/definitions.ts';
import { ModelHealth } from '../../../src/daemon/team/health.ts';
import type { Team } from '../../../src/daemon/team/team.ts';
import { WhatIfs } from '../../../src/daemon/what-if/what-ifs.ts';
import { systemTimers } from '../../../src/kernel/index.ts';
import type { AuditRecord, ConversationStore } from '../../../src/persistence/index.ts';
import { createMemoryStore, type MemoryDisk } from '../../../src/persistence/memory/index.ts';
import { toolboxOf } from '../../support/toolbox.ts';
import { cardOf, NO_HISTORY_LIMITS, PROFILE } from '../agents/support.ts';
import { modelsOfTests } from './configured-models.ts';
import { type Fault, faultyStore } from './faulty-store.ts';
import { FACTS, handBus } from './hand-bus.ts';

/** A daemon without a process: the memory store, a bus and a model in the test's hands. */

/** Rules for an agent without tools. */
const NO_TOOLS: ToolRules = {
  judge: ({ name }) => ({ kind: 'refuse', code: 'TOOL_NOT_AVAILABLE', message: `you have no tool ${name}` }),
  fingerprint: (text) => text,
};

/** One model call that a turn made; it waits until the test says what comes of it. */
interface Call {
  readonly request: ModelRequest;
  readonly signal: AbortSignal;
  say(delta: string): void;
  answer(content: string | null, toolCalls?: ModelAnswer['toolCalls']): void;
  fail(code?: string): void;
}

export interface TestDaemonOptions {
  readonly toolbox?: Toolbox;
  /** Of all agents; default: in this process. */
  readonly runtimeOfAgents?: AgentCard['runtime'];
  /** Of the card of each agent; default: none. */
  readonly toolsOfAgents?: readonly string[];
  readonly tools?: ToolRules;
  readonly limits?: Partial<Team['limits']>;
  readonly disk?: MemoryDisk;
  /** Default: one in memory. */
  readonly store?: ConversationStore;
  /** Among others that share the work. */
  readonly self?: Holder;
  readonly maxPayload?: number;
  /** Answers every call at once; else the test does, call by call. */
  readonly reply?: (request: ModelRequest) => string;
  readonly window?: Partial<ModelProfile>;
  /** The fallbacks of every agent, whose calls are in the test's hands too. */
  readonly fallbacks?: readonly Partial<ModelProfile>[];
  readonly historyLimits?: HistoryLimits;
  readonly summariser?: Summariser;
  /** The wall clock. */
  readonly now?: () => number;
  /** The monotonic clock. */
  readonly elapsed?: () => number;
  readonly telemetry?: TelemetrySink;
  readonly approvalExpiryMs?: number;
  readonly approvers?: readonly string[];
  readonly ownRequests?: boolean;
  readonly isManagedServer?: boolean;
  readonly workflows?: readonly Workflow[];
  /** Configured besides `default`. */
  readonly models?: Readonly<Record<string, Model>>;
  /** Of the publisher alice; everybody else has none. */
  readonly alice?: Partial<PublisherConfig>;
}

export type Holder = Omit<ClaimHolder, 'logs'>;

/** A daemon beside others, of which none owns anything. */
export const AMONG_OTHERS: Holder = {
  daemon: 'one',
  ingressCreated: () => undefined,
  mayTakeOver: () => true,
  mayAct: async () => true,
  publishGivenUp: () => undefined,
};

/** The logs are those of the store; one that is not shared has nothing from other daemons. */
export function claimingOwner(holder: Holder, store: ConversationStore): ClaimingOwner {
  const newest = async (conversation: string) =>
    store.shared ? store.shared.newest(conversation) : { sequence: 0, length: null, status: null };
  const origin = async (conversation: string) => store.shared?.origin(conversation) ?? null;
  return new ClaimingOwner({ ...holder, logs: { newest, origin } });
}

const NO_LIMITS: PublisherConfig = { postsPerMinute: null, maxBytes: null, openConversations: null };

export function createDaemon(options: TestDaemonOptions = {}) {
  const [happened, lines]: [string[], string[]] = [[], []];
  const published: { conversation: string; entries: readonly Entry[] }[] = [];
  const live: LiveChunk[] = [];
  const audited: ({ conversation: string } & AuditRecord)[] = [];
  const calls: Call[] = [];
  const [faults, appends]: [Fault[], number[]] = [[], []];
  const metrics = new Metrics();
  const shutdown = new AbortController();
  setMaxListeners(0, shutdown.signal); // as the daemon's: one for each turn that runs
  const store = faultyStore(options.store ?? createMemoryStore(options.disk), faults, appends, happened);
  const model = handModel(calls, happened, options.reply);
  const cards = ['pm', 'dev', 'qa'].map((slug) => ({
    ...cardOf(slug, { tools: options.toolsOfAgents ?? [] }),
    runtime: options.runtimeOfAgents ?? 'local',
  }));
  const agents = new Map(
    cards.map((card) => {
      const common = {
        card,
        persona: `Persona of ${card.name}.`,
        viewPolicy: DEFAULT_VIEW_POLICY,
        historyLimits: options.historyLimits ?? NO_HISTORY_LIMITS,
        summariser: options.summariser ?? null,
      };
      const fallbacks = (options.fallbacks ?? []).map((given) => ({
        ...common,
        profile: { ...PROFILE, ...options.window, fields: { model: given.name ?? '' }, ...given },
        model: handModel(calls, happened, options.reply),
      }));
      return [
        card.slug,
        { ...common, profile: { ...PROFILE, ...options.window }, model, fallbacks },
      ] as const;
    }),
  );
  let ids = 0;
  const runId = Math.random().toString(36).slice(2); // ids differ from one life of a daemon to the next
  const newId = () => `${runId}-${ids++}`;
  const roster = createRoster(cards, 'pm');
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const sources = {
    roster,
    prompts: { baseChat: 'Base.', baseRun: 'Run.', toolPolicy: 'Tools.' },
    workflows: new Map((options.workflows ?? []).map((workflow) => [workflow.id, workflow])),
    tools: () => options.toolbox?.definitions() ?? new Map(),
    availability: () => ({ rules: [], otherwise: 'runs' }) as const,
    agents,
  };
  const definitions = new Definitions(store.definitions, new FileCache((sha256) => store.blobs.read(sha256)));
  const { elapsed = () => performance.now(), now = Date.now } = options;
  const log = { info: write('info'), warn: write('warn'), error: write('error') };
  const team: Team = {
    sources,
    titler: null,
    agents,
    coding: new Map(),
    rules: {
      roster,
      phases: BUILT_IN_PHASES,
      limits: { hopsPerTrigger: 16, modelCallsPerTurn: 50 },
      workflows: new Map((options.workflows ?? []).map((workflow) => [workflow.id, workflow])),
      tools: options.tools ?? NO_TOOLS,
      ownRequests: options.ownRequests ?? true,
      newId,
      viewPolicy: () => DEFAULT_VIEW_POLICY,
    },
    limits: { turnSeconds: 900, tokensPerConversation: null, usdPerConversation: null, ...options.limits },
    approvers: options.approvers ?? ['*'],
    files: { maxBytes: 1_000_000, maxBytesPerConversation: 1_500_000, scan: null, environment: {} },
    publishers: { named: { alice: { ...NO_LIMITS, ...options.alice } }, others: NO_LIMITS },
    approvalExpiryMs: options.approvalExpiryMs ?? null,
    toolbox: options.toolbox ?? NO_TOOLBOX,
    retry: { attempts: 1, baseMs: 1, maxMs: 1 },
    models: modelsOfTests(model, options.models),
    for: () => team,
  };
  let current = team;
  const forWhatIfs = { definitions, log, elapsed, now };
  const runtime: Runtime = {
    store,
    files: new Files({ store, team, now, newId }, null),
    progress: new IngressProgress(null),
    ownership: options.self ? claimingOwner(options.self, store) : new SoleOwner(),
    get team() {
      return current;
    },
    replaceTeam(next) {
      current = next;
    },
    definitions,
    whatIfs: new WhatIfs({ ...forWhatIfs, team: () => current }),
    remote: model,
    isManagedServer: options.isManagedServer ?? true,
    maxPayload: options.maxPayload ?? 1_000_000,
    now,
    ...{ elapsed, timers: systemTimers },
    newId,
    log,
    telemetry: createTelemetry(metrics.sink(options.telemetry), now),
    shutdown: shutdown.signal,
    reach: () => undefined,
    lastPost: (conversation) => bus.bus.lastPost(conversation),
    ingressEnd: () => bus.bus.ingressEnd(),
    publishEntries(conversation, entries) {
      published.push({ conversation, entries });
      happened.push(`published ${entries.map(({ type }) => type).join(' ')}`);
    },
    livePublisher: new LivePublisher(systemTimers, newId),
    health: new ModelHealth(elapsed),
    retries: new Map(),
    toolProgress: new Map(),
    publishLive: (_, __, chunk) => void live.push(chunk),
    traces: null,
    publishAudit: (conversation, record) => void audited.push({ conversation, ...record }),
  };
  const workers = new Workers(runtime);
  const bus = handBus(options);
  const posts = new Posts(bus.bus, workers, runtime, shutdown.signal);
  const erasure = new Erasure(bus.bus.eraser, runtime);
  const search = new Search(runtime, workers, null);
  const api = new Api(runtime, workers, posts, bus.bus, {
    erasure,
    search,
    reloader: NO_RELOADER,
    facts: FACTS,
    metrics,
  });
  return {
    ...{ runtime, store, workers, posts, api, erasure, bus, shutdown, faults },
    /** From now on the daemon has this team. */
    replaceTeam(changed: Partial<Team>) {
      const next: Team = { ...current, ...changed, for: () => next };
      runtime.replaceTeam(next);
    },
    /** Calls so far, in order. */
    calls,
    /** Number of entries of each append that was made. */
    appends,
    /** Appends, publications and calls, in order. */
    happened,
    lines,
    published,
    live,
    /** What was published of the audit log. */
    audited,
    deliver: (body: string | object, more: Partial<Delivery> = {}) =>
      posts.deliver(bus.delivery('alice', 'demo', body, more)),
    /** The worker of the conversation demo, after a post of alice. */
    async posted(content: string) {
      const worker = await workers.use('demo');
      await worker.submit(postCommand('m1', content));
      return worker;
    },
    async entries(conversation = 'demo') {
      return (await workers.use(conversation)).entries();
    },
    async request(endpoint: string, body: unknown, publisher: string | null = null) {
      return api.handle({ endpoint, body, publisher });
    },
    /** As an ordinary stop whose grace is over. */
    async end() {
      await erasure.stop();
      await search.close();
      const drained = workers.drain();
      shutdown.abort();
      await drained;
      await workers.closeAll();
      await store.close();
    },
  };
}
export type TestDaemon = ReturnType<typeof createDaemon>;

export const postCommand = (id: string, content: string, to?: readonly string[]): Command => ({
  type: 'post',
  post: { id, content, delivery: 'steer', author: { id: 'alice', name: 'Alice' }, ...(to && { to }) },
});

/** Every call of a tool needs an approval. */
export const ASK_FOR_EACH: ToolRules = {
  judge: () => ({ kind: 'ask', risk: 'risky', why: 'it changes things', covers: 'all calls of shell' }),
  fingerprint: (text) => createHash('sha256').update(text).digest('hex'),
};

/** pm calls a tool that needs an approval; answers the id of the approval. */
export async function askApproval(daemon: TestDaemon, conversation = 'demo', text = '{}'): Promise<string> {
  await daemon.workers.submit(conversation, postCommand('m1', 'go', ['pm']));
  const { state } = await daemon.workers.use(conversation);
  const turnId = state.agents.pm?.turn?.turnId ?? '';
  const toolCalls = [{ id: 'x', type: 'function', function: { name: 'shell', arguments: text } } as const];
  const report = { agent: 'pm', turnId, duration: 1, requestHash: 'h', upTo: state.length };
  const answer = { content: null, toolCalls };
  await daemon.workers.submit(conversation, { type: 'model-answered', ...report, answer });
  return pendingApprovals((await daemon.workers.use(conversation)).state)[0]?.approvalId ?? '';
}

function handModel(calls: Call[], happened: string[], reply?: (request: ModelRequest) => string): Model {
  return {
    call: (request, { signal, onDelta }) =>
      new Promise<ModelOutcome>((resolve) => {
        happened.push(`called ${request.agent}`);
        const partial = { content: '', reasoning: '' } as { -readonly [K in keyof PartialAnswer]: string };
        const abort = () => resolve({ kind: 'aborted', partial });
        signal.addEventListener('abort', abort, { once: true });
        const finish = (outcome: ModelOutcome) => {
          signal.removeEventListener('abort', abort);
          resolve(outcome);
        };
        const call: Call = {
          request,
          signal,
          say(delta) {
            partial.content += delta;
            onDelta({ type: 'text', delta });
          },
          answer: (content, toolCalls = []) => finish({ kind: 'answered', answer: { content, toolCalls } }),
          fail: (code = 'PROVIDER_ERROR') =>
            finish({ kind: 'failed', code, message: 'No luck.', partial, retryable: false }),
        };
        calls.push(call);
        if (signal.aborted) abort();
        else if (reply) call.answer(reply(request));
      }),
  };
}

const NO_RELOADER = { reload: () => Promise.reject(new Error('no reload here')) };
const NO_TOOLBOX = toolboxOf({
  run: async () => ({ kind: 'failed', code: 'NO_TOOL', message: 'there are no tools here' }),
});
