import { readFile } from 'node:fs/promises';
import { readPidFile, readRecord, type ServerFiles } from './directory.ts';
import type { Host } from './host.ts';
import type { ManagedLog } from './log.ts';

/**
 * Which process is the server, and ending it.
 *
 * A process id alone says nothing: it may be somebody else's by now. A process is the server of a directory only if
 * it was started with that directory's configuration file; nothing is signalled that is not.
 */

const PS_TIMEOUT_MS = 5_000;

export async function isServerProcess(pid: number, configuration: string, host: Host): Promise<boolean> {
  if (host.platform !== 'linux') {
    const listed = await host.run('ps', ['-ww', '-o', 'command=', '-p', String(pid)], PS_TIMEOUT_MS);
    return listed.kind === 'exited' && listed.code === 0 && listed.output.includes(`-c ${configuration}`);
  }
  try {
    // Empty for a process that has ended and was not reaped yet: rightly not the server.
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
    return words.some((word, place) => word === '-c' && words[place + 1] === configuration);
  } catch {
    return false;
  }
}

/** The process that runs on this directory; null when none that was written down is it. */
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

/** A process that is gone already needs no signal. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/**
 * The cheap question for a look every moment: may be wrong where there is no /proc, for a number that was given to
 * somebody else meanwhile.
 */
export async function seemsToRun(pid: number, configuration: string, host: Host): Promise<boolean> {
  if (host.platform === 'linux') return isServerProcess(pid, configuration, host);
  return processExists(pid);
}

/** Whether any process has this id: ours or not, reaped or not. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
