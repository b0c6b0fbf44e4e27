import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ParleyError } from '../../../kernel/index.ts';
import type { ServerContext } from './context.ts';
import { takeLock } from './lock.ts';
import { findServerProcess, isServerProcess, signalProcess } from './process.ts';

const PAUSE_MS = 25;

export interface EndPatience {
  /** From SIGTERM to SIGKILL. */
  readonly gracefulMs: number;
  /** From SIGKILL to giving up. */
  readonly forcedMs: number;
}
const END_PATIENCE: EndPatience = { gracefulMs: 5_000, forcedMs: 5_000 };

/**
 * Ends the server of the directory, first gracefully, then by SIGKILL; resolves when its lock is free. Only a process that was
 * just verified to be this server gets a signal. A server that another daemon starts meanwhile is left running.
 * Throws `NATS_SERVER_STUCK`.
 */
export async function endServer(context: ServerContext, patience: EndPatience = END_PATIENCE): Promise<void> {
  const { files, host, log } = context;
  const started = performance.now();
  let target: number | null = null;
  let forced = false;
  for (;;) {
    const lock = await takeLock(files.lock);
    if (lock) {
      await rm(files.record, { force: true });
      await rm(files.pidFile, { force: true });
      return lock.release();
    }
    const elapsed = performance.now() - started;
    if (target === null) {
      target = await findServerProcess(files, host, log);
      if (target !== null) signalProcess(target, 'SIGTERM');
    } else if (!(await isServerProcess(target, files.configuration, host))) {
      // It has ended. If the lock is still held, another daemon has started a server.
      const other = await findServerProcess(files, host, log);
      if (other !== null && other !== target) return;
    } else if (!forced && elapsed > patience.gracefulMs) {
      forced = true;
      log('warn', `the nats-server (process ${target}) did not stop in time; killing it`, { pid: target });
      signalProcess(target, 'SIGKILL');
    }
    if (elapsed > patience.gracefulMs + patience.forcedMs) throw stuck(context, target);
    await sleep(PAUSE_MS);
  }
}

function stuck(context: ServerContext, pid: number | null): ParleyError {
  const { directory, lock } = context.files;
  const who = pid === null ? 'its process is not known' : `process ${pid}`;
  return new ParleyError(
    'NATS_SERVER_STUCK',
    `the nats-server of ${directory} does not stop (${who}); its directory stays locked`,
    { hint: `find the process that holds ${lock} (lsof ${lock}) and end it` },
  );
}
