import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { rounded } from './report.ts';

/** Another process of a benchmark: a file beside this one that answers each message with one message. */
export interface Helper {
  readonly pid: number;
  // biome-ignore lint/suspicious/noExplicitAny: each helper has messages of its own
  ask(message: object): Promise<any>;
  close(): Promise<void>;
}

/** Resolves when the helper has sent its first message, which `started` holds. */
export async function startHelper(
  file: string,
  ...args: readonly string[]
): Promise<Helper & { readonly started: string }> {
  const child: ChildProcess = fork(fileURLToPath(new URL(file, import.meta.url)), args);
  const exited = once(child, 'exit');
  const lost = exited.then(([code]): never => {
    throw new Error(`${file} ended with ${code}`);
  });
  lost.catch(() => undefined);
  const answer = async () => (await Promise.race([once(child, 'message'), lost]))[0];
  return {
    started: await answer(),
    pid: child.pid ?? 0,
    ask(message) {
      child.send(message);
      return answer();
    },
    async close() {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

/** Clock ticks of a Linux process: 10 ms. */
const TICK_MS = 10;

/** Processor time of all threads of a process, in milliseconds. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Resident memory of a process now, in MB. */
export function memoryMb(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return rounded(Number(kilobytes) / 1_000, 1);
}

export function load(): number {
  return rounded(loadavg()[0]!, 1);
}
