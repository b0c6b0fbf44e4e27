import { resolve } from 'node:path';
import type { RunningServer, ServerContext } from '../context.ts';
import { prepareDirectory } from '../directory.ts';
import type { ManagedLog } from '../host.ts';
import { type Host, systemHost } from '../host.ts';
import type { LocatedServer } from '../install/version.ts';
import { bringUp } from './bring-up.ts';
import { DEFAULT_MAX_PAYLOAD } from './configuration.ts';
import { locateNatsServer } from './locate.ts';
import { urlOf } from './probe.ts';
import { durabilityOf, type ManagedServer, SupervisedServer } from './supervisor.ts';

export interface ManagedServerOptions {
  /** The server's own directory; created if it is missing. */
  readonly directory: string;
  readonly log: ManagedLog;
  /** Path of the nats-server. */
  readonly binary?: string;
  /** What `locateNatsServer` found; default, without `binary`: what it finds in the usual places. */
  readonly located?: LocatedServer;
  /** Bytes; default 1 MiB. */
  readonly maxPayload?: number;
  /** Limit for an empty server to answer; default 15 s. */
  readonly startTimeoutMs?: number;
  readonly host?: Host;
}

const START_TIMEOUT_MS = 15_000;

/**
 * Adopts the server that runs on this directory, or starts a new one.
 * Throws `ParleyError`: `NATS_DIRECTORY_UNWRITABLE`, `NATS_DIRECTORY_IN_USE`, `NATS_PORT_IN_USE`,
 * `NATS_SERVER_MISSING`, `NATS_SERVER_UNUSABLE`, `NATS_SERVER_FAILED`, `NATS_SERVER_NOT_READY`, `NATS_NO_FREE_PORT`.
 */
export async function startManagedServer(options: ManagedServerOptions): Promise<ManagedServer> {
  const { log } = options;
  const host = options.host ?? systemHost();
  const files = await prepareDirectory(options.directory);
  const stopping = new AbortController();
  const located = options.binary
    ? { path: resolve(options.binary) }
    : (options.located ?? (await locateNatsServer({ env: {}, log, host })));
  const context: ServerContext = {
    files,
    host,
    log,
    binary: located.path,
    maxPayload: options.maxPayload ?? DEFAULT_MAX_PAYLOAD,
    startTimeoutMs: options.startTimeoutMs ?? START_TIMEOUT_MS,
    signal: stopping.signal,
  };
  const version = 'version' in located ? located.version : undefined;
  const server = await bringUp({ ...context, version });
  logServer(log, server);
  return new SupervisedServer(context, server, stopping);
}

function logServer(log: ManagedLog, server: RunningServer): void {
  const durability = durabilityOf(server);
  const verb = server.adopted ? 'adopted the running' : 'started a';
  log('info', `${verb} nats-server ${server.version} at ${urlOf(server.endpoint)} (process ${server.pid})`, {
    pid: server.pid,
    version: server.version,
    adopted: server.adopted,
    durability,
  });
  if (durability === 'always') {
    log('info', 'every acknowledged message is on disk (sync_interval: always)');
    return;
  }
  log(
    'warn',
    `nats-server ${server.version} cannot sync each message: its files are synced about once a second while this ` +
      'daemon runs. A killed process loses nothing; a power loss can lose the last two seconds of acknowledged messages, ' +
      'or the last two minutes if no daemon was running. Use nats-server 2.10 or newer to avoid this.',
  );
}
