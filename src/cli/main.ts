import { userInfo } from 'node:os';
import type { Io } from './io.ts';
import { run } from './program.ts';

/** The process's entry: the only file that knows the process, and the only one that sets its exit code. */

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

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
    invocation: env.npm_lifecycle_event ? 'npm run --silent parley --' : 'parley',
    onSignal(handler) {
      for (const signal of SIGNALS) process.on(signal, handler);
      return () => {
        for (const signal of SIGNALS) process.off(signal, handler);
      };
    },
    onOutputLost(handler) {
      process.stdout.off('error', endWithOutput);
      process.stdout.once('error', handler);
      process.stdout.on('error', () => {}); // what was under way fails too
    },
    exitNow: (code) => process.exit(code),
  };
}

/** Null in a container whose user has no entry. */
function userName(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null;
  }
}

/** `parley show … | head` closes the pipe early: that is no failure. */
function endWithOutput(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit();
  throw error;
}

process.stdout.on('error', endWithOutput);

process.exitCode = await run(process.argv.slice(2), processIo());
