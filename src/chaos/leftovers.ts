import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Violation, violation } from './findings.ts';

/** What a daemon holds while it rests, and what is left when it has ended. Where there is no /proc: unknown. */

/** Sockets, logs and what Node itself holds; each conversation in memory holds its log. */
const FEW = 80;

/** Null: it cannot be counted here. */
export async function countDescriptors(pid: number): Promise<number | null> {
  return readdir(`/proc/${pid}/fd`).then(
    (names) => names.length,
    () => null,
  );
}

export function checkDescriptors(count: number | null, conversations: number): Violation[] {
  const most = FEW + 2 * conversations;
  if (count === null || count <= most) return [];
  return [
    violation(
      'leftovers',
      null,
      null,
      `the daemon holds ${count} descriptors at rest; expected at most ${most}`,
    ),
  ];
}

/** Processes besides this one whose command line names the run's directory. */
export async function processesIn(root: string): Promise<string[]> {
  const names = await readdir('/proc').catch(() => []);
  const found = await Promise.all(
    names
      .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
      .map(async (pid) => {
        const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
        return line.includes(root) ? `${pid}: ${line.replaceAll('\0', ' ').trim()}` : null;
      }),
  );
  return found.filter((line) => line !== null);
}

/** After the daemon's last stop. `expected`: how it should end. */
export async function checkEnd(data: string, exitCode: number | null): Promise<Violation[]> {
  const found: Violation[] = [];
  if (exitCode !== 0) found.push(violation('leftovers', null, null, `the last stop ended with ${exitCode}`));
  const address = await access(join(data, 'connection.json')).then(
    () => true,
    () => false,
  );
  if (address) found.push(violation('leftovers', null, null, 'connection.json is left behind'));
  return found;
}
