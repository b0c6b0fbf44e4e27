import { FileCache, LivePublisher, type Model, type Retry, type Toolbox } from '../agents/index.ts';
import type { Bus } from '../bus/index.ts';
import type { Config } from '../config/index.ts';
import type { Entry, LiveChunk } from '../conversation/index.ts';
import { createIdSource, type Log } from '../kernel/index.ts';
import type { AuditRecord, ConversationStore } from '../persistence/index.ts';
import { composeModels } from './compose/compose.ts';
import { type Given, timeOf } from './compose/given.ts';
import { IngressProgress } from './conversations/ingress-progress.ts';
import type { Ownership } from './conversations/ownership.ts';
import type { Watchers } from './feed/watchers.ts';
import { Files } from './files/files.ts';
import type { ReachCrashPoint } from './observe/crash-points.ts';
import { createTelemetry, type TelemetrySink } from './observe/telemetry.ts';
import type { TraceExporter } from './observe/trace-exporter.ts';
import { Definitions } from './team/definitions.ts';
import { ModelHealth } from './team/health.ts';
import { createTeam, type Team } from './team/team.ts';
import type { ToolProgress } from './tools/run-tool.ts';
import { WhatIfs } from './what-if/what-ifs.ts';

/** What the parts of a daemon share. Each part names what it needs of it: none takes all of it. */
export type Runtime = Awaited<ReturnType<typeof createRuntime>>;

/** The resources that must be acquired first. */
interface Acquired {
  readonly store: ConversationStore;
  readonly ownership: Ownership;
  readonly log: Log;
  /** Aborted when the grace period is over. */
  readonly shutdown: AbortSignal;
  readonly reach: ReachCrashPoint;
  readonly traces: TraceExporter | null;
  readonly bus: Bus;
  readonly watchers: Watchers;
  /** The model of all agents in other processes. */
  readonly remote: Model;
  readonly toolbox: Toolbox;
  readonly telemetry: TelemetrySink | undefined;
  /** Called with the milliseconds that an append took. */
  readonly onAppended?: ((durationMs: number) => void) | undefined;
  /** All posts are read again, so no stored position counts. */
  readonly isReplay: boolean;
  readonly given: Given;
}

export async function createRuntime(config: Config, acquired: Acquired) {
  const { bus, watchers, toolbox, telemetry, onAppended, isReplay, given, ...shared } = acquired;
  const { store, remote, log } = shared;
  const newId = createIdSource();
  const { now, elapsed, timers } = timeOf(given);
  let team = createTeam(config, { toolbox, models: await composeModels(config, given), remote, newId });
  const cache = new FileCache((sha256) => store.blobs.read(sha256));
  const definitions = new Definitions(store.definitions, cache);
  const taking = {
    store,
    now,
    newId,
    get team() {
      return team;
    },
  };
  return {
    ...shared,
    files: await Files.open(taking, given.simulation ? null : config.daemon.data),
    // A store that is also the log feed publishes with the append; a second publish would be in no log.
    publishEntries(conversation: string, entries: readonly Entry[]) {
      if (!store.isFeed) bus.publishEntries(conversation, entries);
      watchers.tell(conversation, { kind: 'entries', entries });
    },
    publishLive(conversation: string, agent: string, chunk: LiveChunk) {
      bus.publishLive(conversation, agent, chunk);
      watchers.tell(conversation, { kind: 'live', agent, chunk });
    },
    publishAudit(conversation: string, record: AuditRecord) {
      if (!store.isFeed) bus.publishAudit(conversation, { ...record });
    },
    progress: new IngressProgress(isReplay ? null : await store.ingressPosition()),
    get team() {
      return team;
    },
    replaceTeam(next: Team) {
      team = next;
    },
    definitions,
    isManagedServer: config.daemon.nats.kind === 'managed',
    whatIfs: new WhatIfs({ definitions, log, elapsed, now, team: () => team }),
    maxPayload: bus.maxPayload,
    now,
    elapsed,
    timers,
    newId,
    telemetry: createTelemetry(telemetry, now, onAppended),
    lastPost: (conversation: string) => bus.lastPost(conversation),
    ingressEnd: () => bus.ingressEnd(),
    livePublisher: new LivePublisher(timers, newId),
    health: new ModelHealth(elapsed),
    retries: new Map<string, Retry & { readonly since: number }>(),
    toolProgress: new Map<string, ToolProgress>(),
  };
}
