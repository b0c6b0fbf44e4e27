import type { Credentials, Endpoint, ServerFiles } from './directory.ts';
import type { Host, ManagedLog } from './host.ts';

/** The input of every step that starts, adopts or ends the server. */
export interface ServerContext {
  readonly files: ServerFiles;
  readonly host: Host;
  readonly log: ManagedLog;
  /** Path of the nats-server. Its version is read at every launch, because an upgrade may replace the file. */
  readonly binary: string;
  /** Its version, if it was read for this launch. */
  readonly version?: string | undefined;
  /** Bytes. */
  readonly maxPayload: number;
  /** Limit for an empty server; one with data gets more time. */
  readonly startTimeoutMs: number;
  /** Aborted by `stop()`; ends every wait. */
  readonly signal: AbortSignal;
}

/** A server that has answered. */
export interface RunningServer {
  readonly endpoint: Endpoint;
  readonly credentials: Credentials;
  readonly pid: number;
  readonly version: string;
  /** Another process, probably a killed daemon, had started it. */
  readonly adopted: boolean;
  /** Resolves when it ends, if it is a child of this process; otherwise only the lock shows that. */
  readonly exited: Promise<unknown> | null;
}
