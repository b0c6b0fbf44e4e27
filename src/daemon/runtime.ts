import type { LiveText, Model, Retry } from '../agents/index.ts';
import type { LiveChunk, StreamPosition } from '../bus/index.ts';
import type { Entry } from '../conversation/index.ts';
import type { Clock, Log, NewId, Timers } from '../kernel/index.ts';
import type { AuditRecord, ConversationStore } from '../persistence/index.ts';
import type { ReachCrashPoint } from './compose/faults.ts';
import type { Ownership } from './conversations/ownership.ts';
import type { Attempts } from './ingress/attempts.ts';
import type { IngressProgress } from './ingress/ingress-progress.ts';
import type { Telemetry } from './observe/telemetry.ts';
import type { Definitions } from './team/definitions.ts';
import type { Team } from './team/team.ts';
import type { WhatIfs } from './what-if/what-ifs.ts';

/** Receives what was appended, to export it as traces. */
export interface TraceFollower {
  /** `entries` returns the whole log. Never throws. */
  appended(conversation: string, appended: readonly Entry[], entries: () => readonly Entry[]): void;
}

/** What every conversation of a daemon shares. */
export interface Runtime {
  readonly store: ConversationStore;
  readonly progress: IngressProgress;
  readonly attempts: Attempts;
  readonly ownership: Ownership;
  /** The current one: read it for each decision, and do not keep it (TEAM-1). */
  readonly team: Team;
  replaceTeam(next: Team): void;
  readonly definitions: Definitions;
  /** The model of all agents in other processes. */
  readonly remote: Model;
  readonly whatIfs: WhatIfs;
  /** A managed server: every publisher may use any author name (PERSON-5). */
  readonly believesNames: boolean;
  /** The limit of the broker, in bytes. */
  readonly maxPayload: number;
  /** The wall clock: for dates. */
  readonly now: Clock;
  /** The monotonic clock: for durations and deadlines. */
  readonly elapsed: Clock;
  /** Timers of the monotonic clock: limits of turns and approvals, waits between attempts. */
  readonly timers: Timers;
  readonly newId: NewId;
  readonly log: Log;
  readonly telemetry: Telemetry;
  /** Aborted when the grace period is over: running work is dropped and stays outstanding in the log. */
  readonly shutdown: AbortSignal;
  /** Crash points, for tests. */
  readonly reach: ReachCrashPoint;
  /** The newest post of a conversation in the ingress stream now; sequence 0: none. */
  lastPost(conversation: string): Promise<StreamPosition>;
  /** The newest post of the ingress stream now; sequence 0: it never had one. */
  ingressEnd(): Promise<StreamPosition>;
  publishEntries(conversation: string, entries: readonly Entry[]): void;
  /** Null: no traces are exported, and no context is passed on. */
  readonly traces: TraceFollower | null;
  readonly liveText: LiveText;
  /** By turn: the repeated model calls of this daemon. `since`: milliseconds since the epoch. */
  readonly retries: Map<string, Retry & { readonly since: number }>;
  publishLive(conversation: string, agent: string, chunk: LiveChunk): void;
  publishAudit(conversation: string, record: AuditRecord): void;
}
