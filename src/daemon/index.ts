export { type MigrateOptions, migrate } from './compose-migration.ts';
export { createDaemon, type Daemon, type DaemonOptions, type Readiness } from './daemon.ts';
export { type ExplainOfflineOptions, explainOffline } from './explain-offline.ts';
export type { Finding } from './findings.ts';
export { type FsckOptions, type FsckReport, fsck } from './fsck.ts';
export type { MigrationReport } from './migrate.ts';
export type { Log } from './runtime.ts';
export type { TelemetryEvent, TelemetrySink } from './telemetry.ts';
export { exportConversation, importConversation } from './transfer.ts';
