/**
 * The daemon: joins the conversation core, the bus, the stores, models, tools and HTTP. No domain rule is decided here.
 * `daemon` starts and stops it, `serve` makes what its parts share, reads and answers.
 * A room imports only rooms below it (test/architecture/import-rules.ts), which are, from the top:
 *
 *   offline/        commands on files without a daemon: fsck, transfer, migrate, backup, explain, nats-config
 *   compose/        selects the adapters: server, stores, bus, models, HTTP, tools. No other room names one.
 *   cluster/        daemons that share the logs: membership, failure detector, claims, routing, takeover, row repair
 *   api/            the request API: one handler for each verb, search, erasure, retention
 *   reload/         replaces the configuration: what differs, the swap, the entries that name it
 *   files/          files on their way to the store: size, hash, type, scan
 *   ingress/        Delivery -> Post -> Entry, or a dead letter; publisher limits, floods, order, retries
 *   conversations/  the open conversations: eviction, deletion, rows, ownership; worker/: decide, append, run effects
 *   what-if/        requests of past turns, sent again with one change
 *   team/           configuration -> Team; the definitions of turns
 *   tools/          policy and rules for tool calls, one call with its audit records, what an entry may contain
 *   feed/           what conversations publish, passed on to watchers in this process
 *   observe/        telemetry events, their counts, traces for a collector; places at which tests kill the daemon
 */

export type { SkipUntil } from '../bus/index.ts';
export type { ExportFormat } from '../conversation/index.ts';
export type { Log } from '../kernel/index.ts';
export type { MigrateOptions } from './compose/archives.ts';
export { checkJetStream, findNatsServer, recordedScript } from './compose/compose.ts';
export type { Activity, Given, Simulation } from './compose/given.ts';
export { mcpLogin, mcpLogout } from './compose/logins.ts';
export { type DeepProbed, deepProbe, type Habit, type Probed, probe } from './compose/probe.ts';
export { composeHidingFault as enclosureFault } from './compose/tools.ts';
export { createDaemon, type Daemon, type DaemonOptions, type Readiness } from './daemon.ts';
export { type CrashPoint, crashPointsFrom, type ReachCrashPoint } from './observe/crash-points.ts';
export type { TelemetryEvent, TelemetrySink } from './observe/telemetry.ts';
export { type BackupOptions, type BackupReport, backup } from './offline/backup.ts';
export { type ExplainOfflineOptions, explainOffline } from './offline/explain-offline.ts';
export { type Finding, type FsckOptions, type FsckReport, fsck } from './offline/fsck.ts';
export { type MigrationReport, migrate } from './offline/migrate.ts';
export { natsConfig } from './offline/nats-config.ts';
export {
  exportConversation,
  exportToFile,
  type ImportOptions,
  importConversation,
} from './offline/transfer.ts';
