import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { ToolOutcome } from '../../agents/tool-port.ts';
import { onAbort, sleep, wellFormed, within } from '../../kernel/index.ts';
import { asIs, type Enclose, OrphanWatch, signalGroup } from '../processes.ts';
import { completed, failed } from '../toolbox.ts';
import { openSandbox } from './files/sandbox.ts';
import { firstCharacter, plainText, wholeCharacters } from './text.ts';
import { defineTool, type ToolContext } from './tool.ts';

export const SHELL_TIMEOUT_MS = 120_000;
/** Characters of output in the failure of a command that timed out. */
const SHELL_LAST_WORDS = 8_000;

const schema = z.strictObject({
  command: z
    .string()
    .min(1)
    .max(100_000)
    .refine((command) => !command.includes('\0'), 'a command holds no null byte')
    .describe('for /bin/sh -c'),
});

export const shellTool = defineTool({
  name: 'shell',
  description:
    "Run a command with /bin/sh in the project's folder. Gives its exit code, then what it wrote (both outputs, in order; of much output the beginning and the end). It gets no input and at most 120 seconds, and what it leaves running in the background is ended with it. Prefer the fs_ tools for reading and changing files.",
  risk: 'risky',
  subject: { kind: 'command', argument: 'command' },
  schema,
  run: async ({ command }, context) => {
    const { root } = openSandbox({ project: context.project });
    const { shellTimeoutMs: timeoutMs, signal, enclose } = context;
    const environment = { PATH: USUAL_PATH, ...context.environment, ...ALWAYS };
    const given = { command, directory: root, environment, timeoutMs, enclose };
    return outcomeOf(await runInGroup(given, signal), context);
  },
});

/** No colours, no pager, no interactive prompt. */
const ALWAYS = { TERM: 'dumb', NO_COLOR: '1', PAGER: 'cat', GIT_PAGER: 'cat', GIT_TERMINAL_PROMPT: '0' };
const USUAL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

function outcomeOf(end: GroupEnd, context: ToolContext): ToolOutcome {
  if (end.endedBy === 'abort') return { kind: 'aborted' };
  if (end.endedBy !== null) {
    const message =
      end.endedBy === 'timeout'
        ? `the command did not end within ${context.shellTimeoutMs / 1_000} seconds and was ended`
        : `the command wrote more than ${SHELL_OUTPUT_BYTES} bytes and was ended`;
    const last = wellFormed(end.output.text().slice(-SHELL_LAST_WORDS));
    const code = end.endedBy === 'timeout' ? 'TIMEOUT' : 'TOO_MUCH_OUTPUT';
    return failed(
      code,
      last === '' ? `${message}; it wrote nothing` : `${message}; its last output:\n${last}`,
    );
  }
  const status = end.signal === null ? `exit code ${end.code}` : `ended by ${end.signal}`;
  const left = end.leftBehind ? ', what it left running was ended' : '';
  const output = end.output.text();
  // The status comes first because a preview shows only the beginning.
  return completed(output === '' ? `[${status}${left}, no output]` : `[${status}${left}]\n${output}`);
}

/**
 * Runs a command in its own process group.
 *
 * PROCESS-GROUP-1 At its deadline, on abort and above the output limit the whole group gets SIGTERM, then SIGKILL.
 * PROCESS-GROUP-2 Background processes in the group are ended with the command: nothing runs after the call.
 * PROCESS-GROUP-3 A process that left the group (setsid) is not waited for, and its output is not read.
 * PROCESS-GROUP-4 The command has no input, and only the given environment.
 * PROCESS-GROUP-5 The group does not outlive this process: the command starts only when the orphan watch is ready.
 */
interface GroupCommand {
  readonly command: string;
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly enclose?: Enclose | undefined;
}

type EndedBy = 'timeout' | 'abort' | 'flood';

interface GroupEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Null: it ended by itself. */
  readonly endedBy: EndedBy | null;
  /** Whether background processes still ran when the command had ended by itself. */
  readonly leftBehind: boolean;
  readonly output: CapturedOutput;
}

/** Kept from the beginning and from the end of the output. */
const SHELL_HEAD_BYTES = 512 * 1024;
const SHELL_TAIL_BYTES = 512 * 1024;
/** A command that writes more is ended: reading it would block the daemon. */
const SHELL_OUTPUT_BYTES = 64 * 1024 * 1024;
/** Between SIGTERM and SIGKILL. */
const SHELL_GRACE_MS = 2_000;

/** PROCESS-GROUP-5. One pipe for both outputs keeps the order of their lines. */
const START_ON_GO = 'read -r go && exec /bin/sh -c "$1" </dev/null 2>&1';
/** For the last output to arrive if a process that left the group keeps the pipe open. */
const DRAIN_MS = 1_000;

/** Rejects with the system's error if the command cannot be started. */
export async function runInGroup(given: GroupCommand, signal: AbortSignal): Promise<GroupEnd> {
  const { enclose = asIs } = given;
  const wrapped = enclose({ command: '/bin/sh', args: ['-c', START_ON_GO, 'sh', given.command] });
  const watch = new OrphanWatch();
  const child = spawn(wrapped.command, wrapped.args, {
    cwd: given.directory,
    env: { ...given.environment },
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const exited = exitOf(child);
  const { pid, stdin, stdout } = child;
  stdin.on('error', () => {}); // it ended before it started the command
  if (pid === undefined || !watch.isRunning) {
    stdin.destroy(); // without `go` the shell ends
    stdout.destroy();
    watch.over();
    throw pid === undefined ? (await exited).error : await watch.failure;
  }
  watch.guard(pid);
  stdin.end('go\n');
  const output = new CapturedOutput();
  const drained = new Promise<void>((resolve) => void stdout.once('close', resolve));
  const ending: { by: EndedBy | null; done: Promise<void> | null } = { by: null, done: null };
  const end = (by: EndedBy | null) => {
    ending.by ??= by;
    ending.done ??= endGroup(pid);
    return ending.done;
  };
  const timer = setTimeout(() => void end('timeout'), given.timeoutMs);
  const detach = onAbort([signal], () => void end('abort'));
  stdout.on('error', () => {}); // a broken pipe has no more output
  stdout.on('data', (chunk: Buffer) => {
    output.add(chunk);
    if (output.total > SHELL_OUTPUT_BYTES) void end('flood');
  });
  try {
    const { code, signal: exitSignal } = await exited;
    const leftBehind = ending.done === null && (await groupLives(pid));
    await end(null);
    await within(DRAIN_MS, drained);
    return { code, signal: exitSignal, endedBy: ending.by, leftBehind, output };
  } finally {
    clearTimeout(timer);
    detach();
    stdout.destroy();
    watch.over();
  }
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** If it did not start. */
  readonly error?: Error;
}

function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.once('error', (error) => resolve({ code: null, signal: null, error }));
  });
}

const POLL_MS = 20;
/** For a killed group to be gone. */
const KILLED_MS = 1_000;

/**
 * Ends a process group: SIGTERM, then SIGKILL.
 *
 * The system does not reuse a group id while the group has a process, including zombies. Zombies are not waited for:
 * without an init process that reaps, they never disappear.
 */
async function endGroup(group: number): Promise<void> {
  if (await endsBy(group, 'SIGTERM', SHELL_GRACE_MS)) return;
  await endsBy(group, 'SIGKILL', KILLED_MS);
}

/** Signals the group. Returns whether all its processes ended within `ms`. */
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
  if (processes.length === 0) return true; // no /proc: rely on the result of the signal
  const members = await Promise.all(processes.map((pid) => livesIn(group, pid)));
  return members.includes(true);
}

/** From /proc/<pid>/stat: `pid (name) state parent group …`; a name may contain ")". */
async function livesIn(group: number, pid: string): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ''); // it has ended
  const [state, , memberOf] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return memberOf === String(group) && state !== 'Z' && state !== 'X';
}

/** The output of a command: its beginning and its end, in bounded memory. */
export class CapturedOutput {
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  /** All bytes received. */
  total = 0;

  add(chunk: Buffer): void {
    this.total += chunk.length;
    const room = SHELL_HEAD_BYTES - this.#headBytes;
    if (room > 0) {
      this.#head.push(chunk.subarray(0, room));
      this.#headBytes += Math.min(room, chunk.length);
    }
    if (chunk.length > room) this.#addToTail(chunk.subarray(Math.max(0, room)));
  }

  /** Plain text, with a line for the bytes left out in the middle. */
  text(): string {
    const head = Buffer.concat(this.#head);
    const rest = Buffer.concat(this.#tail);
    const left = this.total - head.length - Math.min(rest.length, SHELL_TAIL_BYTES);
    if (left <= 0) return plainText(Buffer.concat([head, rest]));
    const tail = rest.subarray(rest.length - SHELL_TAIL_BYTES);
    const beginning = plainText(head.subarray(0, wholeCharacters(head, head.length - 1)));
    const end = plainText(tail.subarray(firstCharacter(tail)));
    return `${beginning}\n[… ${left} bytes left out here …]\n${end}`;
  }

  #addToTail(chunk: Buffer): void {
    this.#tail.push(chunk);
    this.#tailBytes += chunk.length;
    // Trimmed at twice the limit, so that the cost stays linear with small chunks.
    if (this.#tailBytes < 2 * SHELL_TAIL_BYTES) return;
    const all = Buffer.concat(this.#tail);
    this.#tail = [Buffer.from(all.subarray(all.length - SHELL_TAIL_BYTES))];
    this.#tailBytes = SHELL_TAIL_BYTES;
  }
}
