/**
 * The daemon.
 *
 * api/       the request API: api.ts has a handler for each verb; approvals, dead-letters, seeds and watchers are parts of
 *            it; erasure and retention remove texts of conversations that were deleted or are too old
 */

export { checkJetStream } from './compose.ts';
export { composeEnclosureFault as enclosureFault } from './compose-enclosure.ts';
export { type MigrateOptions, migrate } from './compose-migration.ts';
export { createDaemon, type Daemon, type DaemonOptions, type Readiness } from './daemon.ts';
export { type ExplainOfflineOptions, explainOffline } from './offline/explain-offline.ts';
export type { Finding } from './offline/findings.ts';
export { type FsckOptions, type FsckReport, fsck } from './offline/fsck.ts';
export type { MigrationReport } from './offline/migrate.ts';
export { natsConfig } from './offline/nats-config.ts';
export { exportConversation, importConversation } from './offline/transfer.ts';
export type { Log } from './runtime.ts';
export type { TelemetryEvent, TelemetrySink } from './telemetry.ts';
