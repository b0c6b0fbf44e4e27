import type { ClientOptions, Entry, ParleyClient, View } from '../client/index.ts';
import type { Config, Environment, LoadOptions, Secret } from '../config/index.ts';
import type { Faults, SkipUntil } from '../daemon/index.ts';
import type { Log } from './output/logging.ts';

/** The other modules that commands use. Tests replace them. */
export interface CliDependencies {
  connect(options: ClientOptions): Promise<ParleyClient>;
  loadConfig(options: LoadOptions): Promise<Config>;
  /** Loaded on demand, because most commands only connect to a daemon. */
  daemon(): Promise<DaemonModule>;
}

/** An event of the daemon, ready for JSON. */
export interface TelemetryEvent {
  readonly ts: string;
  readonly type: string;
}

export interface DaemonModule {
  createDaemon(options: {
    config: Config;
    load?: () => Promise<Config>;
    log: Log;
    telemetry?: (event: TelemetryEvent) => void;
    isReplay?: boolean;
    skipUntil?: SkipUntil;
    mayInstall?: boolean;
    /** For tests. */
    faults?: Faults;
  }): RunningDaemon;
  /** Throws `CONFIG_INVALID`. */
  faultsFrom(env: Environment): Faults;
  /** Calls each model, and starts each MCP server, once. */
  probe(config: Config): Promise<Probed[]>;
  /** The reason why the data directory cannot be hidden from programs of tools; null: it can, or there are none. */
  enclosureFault(config: Config): Promise<string | null>;
  /** Null: JetStream works; otherwise the reason why this user may not check. Rejects if JetStream does not work. */
  checkJetStream(options: ClientOptions): Promise<string | null>;
  explainOffline(options: {
    dataDirectory: string;
    config: Config;
    conversation: string;
    agent: string;
    at?: number;
  }): Promise<View>;
  exportTraces(options: {
    conversation: string;
    log: readonly Entry[] | { readonly dataDirectory: string };
    url: string | null;
    service: string;
    content: boolean;
  }): Promise<readonly { readonly traceId: string }[]>;
  fsck(options: FsckOptions): Promise<FsckReport[]>;
  exportConversation(dataDirectory: string, conversation: string, format: ExportFormat): Promise<string>;
  /** Null: `resume` declined. */
  importConversation(options: ImportOptions): Promise<ImportOutcome | null>;
  migrate(options: MigrateOptions): Promise<MigrationReport>;
  backup(options: BackupOptions): Promise<BackupReport>;
  /** The script of a scripted model that repeats the answers of a conversation. */
  recordedScript(conversation: string, entries: readonly Entry[]): string;
  /** Renders the configuration of a nats-server. */
  natsConfig(file: string, isNsc: boolean): Promise<string>;
}

export interface Probed {
  readonly kind: 'model' | 'server' | 'functions';
  readonly name: string;
  readonly ms: number;
  readonly fault: { readonly code: string; readonly message: string } | null;
  readonly tools: readonly string[];
}

export interface MigrateOptions {
  readonly to: 'file' | 'jetstream';
  readonly directory: string;
  readonly nats: ClientOptions;
  readonly prefix?: string;
  readonly replicas: number | null;
  readonly log: Log;
}

export interface BackupOptions {
  readonly to: string;
  readonly data: string;
  readonly streams: { readonly nats: ClientOptions; readonly prefix?: string } | null;
  readonly log: Log;
}

export interface BackupReport {
  readonly from: string;
  readonly to: string;
  readonly conversations: number;
  readonly entries: number;
  readonly outputs: number;
  readonly deletions: number;
  readonly bytes: number;
  readonly missing: readonly { readonly id: string; readonly reason: string }[];
}

export interface MigrationReport {
  readonly from: string;
  readonly to: string;
  readonly conversations: number;
  readonly copied: number;
  readonly entries: number;
  readonly records: number;
  readonly outputs: number;
  readonly deletions: number;
}

export interface ImportOptions {
  readonly dataDirectory: string;
  readonly file: string;
  readonly conversation: string;
  /** The author of messages that name no agent. */
  readonly agent: string;
  readonly resume?: (work: readonly string[]) => Promise<boolean>;
}

interface ImportOutcome {
  readonly conversation: string;
  readonly entries: number;
  /** The same conversation existed already; nothing was changed. */
  readonly duplicate: boolean;
  /** What is outstanding in the file: ended, or resumed. */
  readonly work: readonly string[];
}

export interface FsckOptions {
  readonly dataDirectory: string;
  readonly conversation?: string;
  readonly repair: boolean;
  readonly views?: boolean;
}

export interface FsckReport {
  readonly conversation: string;
  readonly findings: readonly {
    readonly kind: string;
    readonly index: number | null;
    readonly text: string;
    readonly repair: string | null;
    readonly repaired: boolean;
  }[];
}

export interface Readiness {
  readonly pid: number;
  /** Without credentials. */
  readonly nats: string;
  readonly http: string | null;
  /** Makes the one-time codes of addresses of the console. */
  readonly codeKey?: Secret | null;
  readonly agents: readonly string[];
  readonly store: string;
  /** Its id among daemons with shared logs; null: it has its own logs. */
  readonly daemon?: string | null;
}

export interface RunningDaemon {
  start(): Promise<Readiness>;
  reload(why: string): Promise<void>;
  stop(): Promise<void>;
}

export function realDependencies(): CliDependencies {
  return {
    connect: async (options) => (await import('../client/index.ts')).connect(options),
    loadConfig: async (options) => (await import('../config/index.ts')).loadConfig(options),
    daemon: () => import('../daemon/index.ts'),
  };
}

export type ExportFormat = 'openai' | 'markdown' | 'jsonl';
