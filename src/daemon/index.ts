export { createDaemon, type Daemon, type DaemonOptions, type Readiness } from './daemon.ts';
export { type ExplainOfflineOptions, explainOffline } from './explain-offline.ts';
export type { Log } from './runtime.ts';
export type { TelemetryEvent, TelemetrySink } from './telemetry.ts';
