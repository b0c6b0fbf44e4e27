import { type ChildProcess, spawn } from 'node:child_process';
import { sleep } from '../../kernel/index.ts';
import { asIs, type Enclose } from '../hide-folder.ts';
import { OrphanWatch } from '../orphan-watch.ts';
import { CapturedOutput } from './captured-output.ts';
import { endGroup, groupLives } from './end-group.ts';
import { SHELL_OUTPUT_BYTES } from './limits.ts';

/**
 * A command in a process group of its own.
 *
 * C1 It ends at its deadline, at an abort, and when it writes without end: the whole group is asked (SIGTERM), then
 *    ended (SIGKILL).
 * C2 What it leaves behind in its group is ended with it: nothing runs on after the call.
 * C3 What left the group (setsid) is neither waited for nor listened to.
 * C4 It has no input, and of the environment only what it was given.
 * C5 It does not outlive this process: it begins when it is told to, and by then somebody watches.
 */
export interface GroupCommand {
  readonly command: string;
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly enclose?: Enclose | undefined;
}

export type EndedBy = 'timeout' | 'abort' | 'flood';

export interface GroupEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Null when it ended by itself. */
  readonly endedBy: EndedBy | null;
  /** Whether something of it still ran when it had ended by itself. */
  readonly leftBehind: boolean;
  readonly output: CapturedOutput;
}

/** C5. One pipe for both outputs, so that their lines stand in the order in which they were written. */
const WHEN_TOLD = 'read -r go && exec /bin/sh -c "$1" </dev/null 2>&1';
/** For the last output to arrive, when somebody who left the group keeps the pipe open. */
const LAST_MS = 1_000;

/** Rejects when it cannot be started, with the system's error. */
export async function runInGroup(given: GroupCommand, signal: AbortSignal): Promise<GroupEnd> {
  const watch = new OrphanWatch();
  const { enclose = asIs } = given;
  const begun = enclose({ command: '/bin/sh', args: ['-c', WHEN_TOLD, 'sh', given.command] });
  const child = spawn(begun.command, begun.args, {
    cwd: given.directory,
    env: { ...given.environment }, // C4
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const exited = exitOf(child);
  const { pid, stdin, stdout } = child;
  stdin.on('error', () => {}); // it ended before it was told to begin
  if (pid === undefined || !watch.isThere) {
    stdin.destroy(); // never told: one that was started ends
    stdout.destroy();
    watch.over();
    throw pid === undefined ? (await exited).error : await watch.failure;
  }
  watch.guard(pid);
  stdin.end('go\n'); // C5
  const output = new CapturedOutput();
  const drained = new Promise<void>((resolve) => void stdout.once('close', resolve));
  const ending: { by: EndedBy | null; done: Promise<void> | null } = { by: null, done: null };
  const end = (by: EndedBy | null) => {
    ending.by ??= by;
    ending.done ??= endGroup(pid);
    return ending.done;
  };
  const aborted = () => void end('abort');
  const timer = setTimeout(() => void end('timeout'), given.timeoutMs); // C1
  signal.addEventListener('abort', aborted, { once: true });
  if (signal.aborted) aborted();
  stdout.on('error', () => {}); // a pipe that breaks has nothing more to say
  stdout.on('data', (chunk: Buffer) => {
    output.add(chunk);
    if (output.total > SHELL_OUTPUT_BYTES) void end('flood');
  });
  try {
    const { code, signal: exitSignal } = await exited;
    const leftBehind = ending.done === null && (await groupLives(pid));
    await end(null); // C2
    await atMost(LAST_MS, drained);
    return { code, signal: exitSignal, endedBy: ending.by, leftBehind, output };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', aborted);
    stdout.destroy(); // C3
    watch.over();
  }
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** When it did not start. */
  readonly error?: Error;
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', (error) => resolve({ code: null, signal: null, error }));
  });
}

async function atMost(ms: number, work: Promise<void>): Promise<void> {
  const over = new AbortController();
  await Promise.race([work, sleep(ms, over.signal)]);
  over.abort();
}
