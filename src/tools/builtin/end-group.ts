import { readdir, readFile } from 'node:fs/promises';
import { sleep } from '../../kernel/index.ts';
import { errnoOf } from './errors.ts';
import { SHELL_GRACE_MS } from './limits.ts';

/**
 * Ending a process group: asked first, then killed.
 *
 * A group's number is nobody else's as long as somebody is in it, the dead included that nobody has reaped yet. Those
 * need not be waited for: where no init process reaps, they stay for ever.
 */

const POLL_MS = 20;
/** For a killed group to be gone. */
const KILLED_MS = 1_000;

export async function endGroup(group: number): Promise<void> {
  if (await endsBy(group, 'SIGTERM', SHELL_GRACE_MS)) return;
  await endsBy(group, 'SIGKILL', KILLED_MS);
}

/** Signals the group, and answers whether nothing of it runs any more within `ms`. */
async function endsBy(group: number, signal: NodeJS.Signals, ms: number): Promise<boolean> {
  if (!signalGroup(group, signal)) return true;
  const until = performance.now() + ms;
  while (await groupLives(group)) {
    if (performance.now() > until) return false;
    await sleep(POLL_MS);
  }
  return true;
}

export async function groupLives(group: number): Promise<boolean> {
  if (!signalGroup(group, 0)) return false;
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  if (processes.length === 0) return true; // no such list here: the signal's answer counts
  const members = await Promise.all(processes.map((pid) => livesIn(group, pid)));
  return members.includes(true);
}

/** From /proc/<pid>/stat: `pid (name) state parent group …`; a name may hold anything, ")" too. */
async function livesIn(group: number, pid: string): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''); // gone meanwhile
  const [state, , memberOf] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return memberOf === String(group) && state !== 'Z' && state !== 'X';
}

/** False when there is nobody in the group. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    return errnoOf(error) !== 'ESRCH';
  }
}
