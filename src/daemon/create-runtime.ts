import { LiveText, type Model, type Toolbox } from '../agents/index.ts';
import type { Bus } from '../bus/index.ts';
import type { Config } from '../config/index.ts';
import type { Entry } from '../conversation/index.ts';
import { createIdSource } from '../kernel/index.ts';
import type { ConversationStore } from '../persistence/index.ts';
import { composeModels } from './compose/compose.ts';
import { type Given, timeOf, whatIfTextsOf } from './compose/given.ts';
import type { Watchers } from './feed/watchers.ts';
import { Attempts } from './ingress/attempts.ts';
import { IngressProgress } from './ingress/ingress-progress.ts';
import { createTelemetry, type TelemetrySink } from './observe/telemetry.ts';
import type { Runtime } from './runtime.ts';
import { Definitions } from './team/definitions.ts';
import { createTeam } from './team/team.ts';
import { WhatIfs } from './what-if/what-ifs.ts';

/** Builds the runtime from the configuration and the acquired resources: agents with models, rules, publishing. */

/** The resources that must be acquired first. */
export interface Acquired
  extends Pick<Runtime, 'store' | 'ownership' | 'log' | 'shutdown' | 'reach' | 'traces'> {
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

export async function createRuntime(
  config: Config,
  {
    store,
    ownership,
    bus,
    watchers,
    remote,
    toolbox,
    log,
    telemetry,
    onAppended,
    traces,
    shutdown,
    reach,
    isReplay,
    given,
  }: Acquired,
): Promise<Runtime> {
  const newId = createIdSource();
  const { now, elapsed, timers } = timeOf(given);
  let team = createTeam(config, { toolbox, models: await composeModels(config, given), remote, newId });
  const definitions = new Definitions(store.definitions);
  const runtime: Runtime = {
    store,
    ownership,
    progress: new IngressProgress(isReplay ? null : await store.ingressPosition()),
    attempts: await Attempts.open(store),
    get team() {
      return team;
    },
    replaceTeam(next) {
      team = next;
    },
    definitions,
    remote,
    believesNames: config.daemon.nats.kind === 'managed',
    whatIfs: new WhatIfs({
      ...{ definitions, log, elapsed, now },
      team: () => runtime.team,
      texts: whatIfTextsOf(given, config),
    }),
    maxPayload: bus.maxPayload,
    now,
    elapsed,
    timers,
    newId,
    log,
    telemetry: createTelemetry(telemetry, now, onAppended),
    traces,
    shutdown,
    reach,
    lastPost: (conversation) => bus.lastPost(conversation),
    ingressEnd: () => bus.ingressEnd(),
    ...feedsOf(store, bus, watchers),
    liveText: new LiveText(timers, newId),
    retries: new Map(),
    publishLive(conversation, agent, chunk) {
      bus.publishLive(conversation, agent, chunk);
      watchers.tell(conversation, { kind: 'live', agent, chunk });
    },
  };
  return runtime;
}

/** A store that is also the log feed publishes with the append; a second publish would be in no log. */
function feedsOf(
  store: ConversationStore,
  bus: Bus,
  watchers: Watchers,
): Pick<Runtime, 'publishEntries' | 'publishAudit'> {
  const tell = (conversation: string, entries: readonly Entry[]) =>
    watchers.tell(conversation, { kind: 'entries', entries });
  if (store.isFeed) return { publishEntries: tell, publishAudit: () => undefined };
  return {
    publishEntries(conversation, entries) {
      bus.publishEntries(conversation, entries);
      tell(conversation, entries);
    },
    publishAudit: (conversation, record) => bus.publishAudit(conversation, { ...record }),
  };
}
