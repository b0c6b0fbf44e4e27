import type { Credentials, Endpoint, ServerFiles } from './directory.ts';
import type { Host } from './host.ts';
import type { ManagedLog } from './log.ts';

/** What every step of a server's life is given. */
export interface ServerContext {
  readonly files: ServerFiles;
  readonly host: Host;
  readonly log: ManagedLog;
  /** Path of the nats-server; its version is asked anew at every launch, since an upgrade may replace it. */
  readonly binary: string;
  /** Bytes. */
  readonly maxPayload: number;
  /** How long an empty server may take until it answers; a full one gets more. */
  readonly startTimeoutMs: number;
  /** Ends every wait: `stop()` was called. */
  readonly signal: AbortSignal;
}

/** A server that answered. */
export interface RunningServer {
  readonly endpoint: Endpoint;
  readonly credentials: Credentials;
  readonly pid: number;
  readonly version: string;
  /** It ran already: another process, most likely a killed one, had started it. */
  readonly adopted: boolean;
  /** Resolves when it ends, if it is this process's child; else only the lock tells. */
  readonly exited: Promise<unknown> | null;
}
