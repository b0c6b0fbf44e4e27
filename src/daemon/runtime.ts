import type { AgentSetup, Model, RequestSources, RetryPolicy, Summariser, Toolbox } from '../agents/index.ts';
import type { LiveChunk, StreamPosition } from '../bus/index.ts';
import type { PublishersConfig } from '../config/index.ts';
import type { ConversationRules, Entry } from '../conversation/index.ts';
import type { Clock, NewId } from '../kernel/index.ts';
import type { AuditRecord, ConversationStore } from '../persistence/index.ts';
import type { Ownership } from './conversations/ownership.ts';
import type { ReachCrashPoint } from './crash-points.ts';
import type { Definitions } from './definitions.ts';
import type { Attempts } from './ingress/attempts.ts';
import type { IngressProgress } from './ingress/ingress-progress.ts';
import type { Telemetry } from './telemetry.ts';

/** The daemon's log; pino implements it. Fields never contain a secret. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The limits that are enforced while a turn runs (L15); the others are decided by the core. */
interface RunLimits {
  readonly turnSeconds: number;
  readonly tokensPerConversation: number | null;
  readonly usdPerConversation: number | null;
}

/** An agent with its model. */
export interface RunningAgent extends AgentSetup {
  readonly model: Model;
  /** Null: an extract without a model replaces what does not fit. */
  readonly summariser: Summariser | null;
}

/** What every conversation of a daemon shares. */
export interface Runtime {
  readonly store: ConversationStore;
  readonly progress: IngressProgress;
  readonly attempts: Attempts;
  readonly ownership: Ownership;
  readonly rules: ConversationRules;
  readonly sources: RequestSources;
  readonly definitions: Definitions;
  readonly agents: ReadonlyMap<string, RunningAgent>;
  readonly retry: RetryPolicy;
  readonly toolbox: Toolbox;
  /** Publishers that may answer approvals; `*`: all. Empty: only the operator. */
  readonly approvers: readonly string[];
  /** How long a call waits for an approval; null: without limit. */
  readonly approvalExpiryMs: number | null;
  /** A managed server: every publisher may use any author name (PERSON-5). */
  readonly believesNames: boolean;
  readonly limits: RunLimits;
  readonly publishers: PublishersConfig;
  /** Of the broker, in bytes. */
  readonly maxPayload: number;
  /** The wall clock: for dates. */
  readonly now: Clock;
  /** The monotonic clock: for durations and deadlines. */
  readonly elapsed: Clock;
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
  publishLive(conversation: string, agent: string, chunk: LiveChunk): void;
  publishAudit(conversation: string, record: AuditRecord): void;
}
