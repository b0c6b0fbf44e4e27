import { readFile } from 'node:fs/promises';
import { readPidFile, readRecord, type ServerFiles } from './directory.ts';
import type { Host, ManagedLog } from './host.ts';

/**
 * Identifies the process of the server.
 *
 * A process id alone proves nothing, because ids are reused. A process is the server of a directory only if it was started
 * with that directory's configuration file; only such a process gets a signal.
 */

const PS_TIMEOUT_MS = 5_000;

export async function isServerProcess(pid: number, configuration: string, host: Host): Promise<boolean> {
  if (host.platform !== 'linux') {
    const listed = await host.run('ps', ['-ww', '-o', 'command=', '-p', String(pid)], PS_TIMEOUT_MS);
    return listed.kind === 'exited' && listed.code === 0 && listed.output.includes(`-c ${configuration}`);
  }
  try {
    // Empty for a process that has ended and was not reaped yet.
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
    return words.some((word, at) => word === '-c' && words[at + 1] === configuration);
  } catch {
    return false;
  }
}

/** The server process of this directory, from its records; null when none of them is valid. */
export async function findServerProcess(
  files: ServerFiles,
  host: Host,
  log: ManagedLog,
): Promise<number | null> {
  const candidates = [(await readRecord(files, log))?.pid ?? null, await readPidFile(files)];
  for (const pid of candidates) {
    if (pid !== null && (await isServerProcess(pid, files.configuration, host))) return pid;
  }
  return null;
}

/** Ignores a process that has already ended. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** A cheap check for frequent polls. Without /proc it may be wrong if the process id was reused. */
export async function seemsToRun(pid: number, configuration: string, host: Host): Promise<boolean> {
  if (host.platform === 'linux') return isServerProcess(pid, configuration, host);
  return processExists(pid);
}

/** Whether any process has this id, reaped or not. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
