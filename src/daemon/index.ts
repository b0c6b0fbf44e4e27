/**
 * The daemon: joins the conversation core, the bus, the stores, models, tools and HTTP. No domain rule is decided here.
 *
 *   daemon, serve, shutdown  start, read and answer, stop      runtime, create-runtime  what all conversations share
 *   telemetry, metrics       events and their counts           data-directory          the directory, its HTTP token
 *   agents, team, definitions  configuration -> Team; the definitions of turns
 *
 *   compose/        selects the adapters: server, store, bus, models, HTTP, tools, files; probe; faults: switches for tests. No other folder here names one.
 *   conversations/  the open conversations: eviction, deletion, rows, ownership; worker/: decide, append, run effects
 *   ingress/        delivery -> post -> command; publisher limits, floods, order, retries, posts that crash the daemon
 *   cluster/        daemons that share the logs: membership, failure detector, leases, routing, takeover, row repair
 *   api/            the request API, dead letters, erasure, retention, watchers
 *   what-if/        requests of past turns, sent again with one change: jobs, results, configured models
 *   tools/          policy and rules for tool calls, one call with its audit records, large results
 *   reload/         replaces the configuration: what differs and what needs a restart, the swap, the entries that name it
 *   traces/         sends what was appended to an OpenTelemetry collector
 *   offline/        commands on files without a daemon: fsck, transfer, migrate, backup, explain, traces, nats-config
 */

export type { SkipUntil } from '../bus/index.ts';
export type { ExportFormat } from '../conversation/index.ts';
export { type BackupOptions, backup } from './compose/backup.ts';
export { checkJetStream, recordedScript } from './compose/compose.ts';
export { type CrashPoint, type Faults, faultsFrom, type ReachCrashPoint } from './compose/faults.ts';
export type { Activity, Given, Simulation } from './compose/given.ts';
export { type MigrateOptions, migrate } from './compose/migration.ts';
export { type Probed, probe } from './compose/probe.ts';
export { composeHidingFault as enclosureFault } from './compose/tools.ts';
export { createDaemon, type Daemon, type DaemonOptions, type Readiness } from './daemon.ts';
export type { BackupReport } from './offline/backup.ts';
export { type ExplainOfflineOptions, explainOffline } from './offline/explain-offline.ts';
export type { Finding } from './offline/findings.ts';
export { type FsckOptions, type FsckReport, fsck } from './offline/fsck.ts';
export type { MigrationReport } from './offline/migrate.ts';
export { natsConfig } from './offline/nats-config.ts';
export { type ExportTracesOptions, exportTraces } from './offline/traces.ts';
export { exportConversation, type ImportOptions, importConversation } from './offline/transfer.ts';
export type { Log } from './runtime.ts';
export type { TelemetryEvent, TelemetrySink } from './telemetry.ts';
