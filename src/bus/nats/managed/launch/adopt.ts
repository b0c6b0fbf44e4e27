import { access } from 'node:fs/promises';
import type { RunningServer, ServerContext } from '../context.ts';
import { readCredentials, readEndpoint, readRecord } from '../directory.ts';
import { findServerProcess } from '../process.ts';
import { probeServer } from './probe.ts';

/**
 * Taking over a server that runs already.
 *
 * A1 Only one that answers to this directory's name and credentials, and whose process was started on this
 *    directory's configuration, is adopted: `stop()` will have to end exactly that process.
 * A2 Nothing is written: whoever holds the lock may be writing.
 */
export type Adoption =
  | { readonly kind: 'adopted'; readonly server: RunningServer }
  /** An older version started it with a password, which is not sent to any port: it is to be started anew. */
  | { readonly kind: 'outdated' }
  | { readonly kind: 'not-yet'; readonly why: string; readonly pid: number | null };

export async function adoptServer(context: ServerContext): Promise<Adoption> {
  const { files, host, log } = context;
  const pid = await findServerProcess(files, host, log);
  if (pid === null) return notYet('no process that was started on this directory is known', null);
  const credentials = await readCredentials(files, log);
  if (!credentials) {
    if (await exists(files.oldPassword)) return { kind: 'outdated' };
    return notYet(`${files.seed} is missing or damaged`, pid);
  }
  // What runs counts: the other file may have been edited since, for the next start.
  const endpoint = (await readRecord(files, log)) ?? (await readEndpoint(files, log));
  if (!endpoint) return notYet(`${files.endpoint} is missing or damaged`, pid);
  const probe = await probeServer(endpoint, credentials);
  if (probe.kind === 'not-ready') return notYet(probe.why, pid);
  if (probe.maxPayload !== context.maxPayload) {
    const wanted = `max_payload ${context.maxPayload} is wanted, ${probe.maxPayload} is in force`;
    log('warn', `the nats-server that runs keeps its settings until it is stopped: ${wanted}`);
  }
  const server = { endpoint, credentials, pid, version: probe.version, adopted: true, exited: null };
  return { kind: 'adopted', server };
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function notYet(why: string, pid: number | null): Adoption {
  return { kind: 'not-yet', why, pid };
}
