import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { userInfo } from 'node:os';
import { isatty } from 'node:tty';
import { messageOf } from '../kernel/index.ts';
import type { EndSignal, Io } from './io.ts';
import { run } from './program.ts';

/** The entry point: the only file that uses `process` and sets the exit code. */

const SIGNALS: readonly EndSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function processIo(): Io {
  const { env } = process;
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env,
    workingDirectory: process.cwd(),
    nodeVersion: process.versions.node,
    userName: userName(),
    invocation: invocationBy(env.npm_lifecycle_event),
    onSignal(handler) {
      for (const signal of SIGNALS) process.on(signal, handler);
      return () => {
        for (const signal of SIGNALS) process.off(signal, handler);
      };
    },
    isTerminalClosed: () => hadTerminal && !hasTerminal(),
    onExit(handler) {
      process.once('exit', handler);
      return () => process.off('exit', handler);
    },
    onOutputLost(handler) {
      process.stdout.off('error', endWithOutput);
      process.stdout.once('error', handler);
      process.stdout.on('error', () => {}); // pending writes fail too
    },
    hideEnvironment: () => hideEnvironment(env),
    exitNow: (code) => process.exit(code),
  };
}

/** `npx parley` would install a package of another author where `parleyd` is not installed. */
function invocationBy(script: string | undefined): string {
  if (script === undefined || script === '') return 'parley';
  return script === 'npx' ? 'npx parleyd' : 'npm run --silent parley --';
}

/** The kernel opens it only for a process with a controlling terminal. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/** Null for a user without an entry in the user database, for example in a container. */
function userName(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null;
  }
}

/** `parley show … | head` closes the pipe early, which is not a failure. */
function endWithOutput(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit();
  ignoreLostReader(error);
}

/** A closed terminal also sends SIGHUP, which ends the command. Ctrl-C ends `tee` before the daemon, which stops in order without it. */
function ignoreLostReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EIO' && error.code !== 'EPIPE') throw error;
}

/**
 * Removes the variables that this process was started with from what the system shows of it (`/proc/PID/environ`, `ps e`):
 * other programs of the same user, such as those of tools, would read keys there. `process.env` keeps its values.
 *
 * The system shows the memory in which the process got its variables. So each variable is set again, which moves it, and
 * that memory is overwritten. Returns the reason why this is impossible; null: it is done.
 */
function hideEnvironment(env: NodeJS.ProcessEnv): string | null {
  try {
    const [start, end] = environmentMemory();
    for (const [name, value] of Object.entries(env)) env[name] = value;
    const memory = openSync('/proc/self/mem', 'r+');
    try {
      writeSync(memory, Buffer.alloc(end - start), 0, end - start, start);
    } finally {
      closeSync(memory);
    }
    return readFileSync('/proc/self/environ').some((byte) => byte !== 0) ? 'the system still shows it' : null;
  } catch (error) {
    return messageOf(error);
  }
}

/** The fields 50 and 51 of proc(5). The name of the program, field 2, may contain spaces and `)`. */
function environmentMemory(): [start: number, end: number] {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [start, end] = [Number(fields[47]), Number(fields[48])];
  if (start > 0 && end >= start && Number.isSafeInteger(end)) return [start, end];
  throw new Error('the system does not say where it is');
}

process.stdout.on('error', endWithOutput);
process.stderr.on('error', ignoreLostReader);

const hadTerminal = hasTerminal();
const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));

/** Without a top-level await: a chunk of the bundle that is loaded later may import this one, and would wait for its end. */
async function main(): Promise<void> {
  process.exitCode = await run(process.argv.slice(2), processIo());
  // At its exit Node aborts if it cannot restore a closed terminal. The work is done, so end by SIGHUP instead.
  if (terminals.some((descriptor) => !isatty(descriptor))) process.kill(process.pid, 'SIGHUP');
}

void main();
