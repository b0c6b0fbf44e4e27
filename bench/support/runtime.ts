import { FileCache, LivePublisher, type Model, type Toolbox, type WireForm } from '../../src/agents/index.ts';
import { loadConfig, SHIPPED_CONFIG } from '../../src/config/index.ts';
import type { Entry } from '../../src/conversation/index.ts';
import { IngressProgress } from '../../src/daemon/conversations/ingress-progress.ts';
import { SoleOwner } from '../../src/daemon/conversations/ownership.ts';
import { Files } from '../../src/daemon/files/files.ts';
import { NO_TELEMETRY } from '../../src/daemon/observe/telemetry.ts';
import type { Runtime } from '../../src/daemon/runtime.ts';
import { Definitions } from '../../src/daemon/team/definitions.ts';
import { ModelHealth } from '../../src/daemon/team/health.ts';
import { conversationRules, requestSources, type Team } from '../../src/daemon/team/team.ts';
import { WhatIfs } from '../../src/daemon/what-if/what-ifs.ts';
import { createIdSource, monotonicClock, systemClock, systemTimers } from '../../src/kernel/index.ts';
import type { ConversationStore } from '../../src/persistence/index.ts';

/**
 * What a conversation's worker needs, as the daemon composes it from the configuration that ships, but for three
 * things: the model answers at once, the bus hands what it would publish to the benchmark, and the model's window
 * is wide enough for any history, so that a long one is measured and not refused.
 */

export const ANSWER = `Agreed. ${'The plan stands as we wrote it down, and the next step is mine. '.repeat(5)}`;

const instantModel: Model = {
  call: (request, { onDelta }) => {
    if (request.body.length === 0) throw new Error('an empty request'); // a real one would send these bytes
    onDelta({ type: 'text', delta: ANSWER });
    return Promise.resolve({
      kind: 'answered',
      answer: {
        content: ANSWER,
        toolCalls: [],
        model: 'instant',
        usage: { inputTokens: 1, outputTokens: 1 },
      },
    });
  },
};

const config = await loadConfig({ configDirectory: SHIPPED_CONFIG, env: {} });

const WIDE_WINDOW_TOKENS = 1_000_000_000;

/** `onEntries` is called with what was appended, once it is durable. `form`: what differs in the requests of each agent. */
export function createRuntime(
  store: ConversationStore,
  onEntries: (conversation: string, entries: readonly Entry[]) => void = () => undefined,
  form: Partial<WireForm> = {},
): Runtime {
  const toolbox = noTools();
  const shipped = requestSources(config, toolbox);
  const agents = [...shipped.agents].map(([slug, setup]) => {
    const given = { ...setup.profile.form, ...form };
    const profile = { ...setup.profile, contextTokens: WIDE_WINDOW_TOKENS, form: given };
    return [slug, { ...setup, profile, fallbacks: [], model: instantModel, summariser: null }] as const;
  });
  const sources = { ...shipped, agents: new Map(agents) };
  const newId = createIdSource();
  const { retry, limits, publishers } = config;
  const team: Team = {
    ...{ sources, agents: sources.agents, retry, toolbox, limits, publishers, titler: null },
    files: { ...config.blobs, environment: {} },
    rules: conversationRules(config, sources, toolbox, newId),
    coding: new Map(),
    approvers: ['*'],
    approvalExpiryMs: null,
    models: { names: [], get: () => undefined, changedTo: () => null },
    for: () => team,
  };
  const files = new FileCache((sha256) => store.blobs.read(sha256));
  const definitions = new Definitions(store.definitions, files);
  const log = { info: () => undefined, warn: complain, error: complain };
  return {
    store,
    files: new Files({ store, team, now: Date.now, newId }, null),
    ownership: new SoleOwner(),
    progress: new IngressProgress(null),
    team,
    replaceTeam: () => undefined,
    definitions,
    remote: instantModel,
    whatIfs: new WhatIfs({
      ...{ definitions, log, team: () => team },
      ...{ elapsed: monotonicClock, now: systemClock },
    }),
    maxPayload: 1_048_576,
    traces: null,
    publishAudit: () => undefined,
    isManagedServer: true,
    now: systemClock,
    elapsed: monotonicClock,
    timers: systemTimers,
    newId,
    log,
    telemetry: NO_TELEMETRY,
    shutdown: new AbortController().signal,
    reach: () => undefined,
    ingressEnd: async () => ({ stream: 'bench', sequence: 0 }),
    lastPost: async () => ({ stream: '', sequence: 0 }),
    publishEntries: onEntries,
    livePublisher: new LivePublisher(systemTimers, newId),
    health: new ModelHealth(monotonicClock),
    publishLive: () => undefined,
    retries: new Map(),
    toolProgress: new Map(),
  };
}

function noTools(): Toolbox {
  const none = new Map();
  return {
    definitions: () => none,
    check: () => null,
    run: async () => ({ kind: 'failed', code: 'NO_TOOL', message: 'the benchmarks call none' }),
    close: async () => undefined,
  };
}

/** A benchmark of a daemon that complains measures something else. */
function complain(fields: object, message: string): void {
  throw new Error(`${message}: ${JSON.stringify(fields)}`);
}
