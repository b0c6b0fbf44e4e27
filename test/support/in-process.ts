import { userInfo } from 'node:os';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { EndSignal, Io } from '../../src/cli/io.ts';
import { type CliOutcome, outcomeOf, runCli, strangersEnvironment } from './cli.ts';
import { hasLongTests } from './runs.ts';

/** A command that runs in the process of the test, without the 0.5 s of a processor that the start of a process takes. */
export interface RunningCommand {
  readonly stdin: PassThrough;
  readonly stdout: PassThrough;
  readonly stderr: PassThrough;
  signal(name: EndSignal): void;
  /** Resolves with the exit code. */
  readonly exited: Promise<number>;
}

export function startInProcess(
  args: readonly string[],
  workingDirectory: string,
  env: Readonly<Record<string, string>> = {},
): RunningCommand {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const handlers = new Set<(signal: EndSignal) => void>();
  const io: Io = {
    ...{ stdin, stdout, stderr, workingDirectory },
    env: { ...strangersEnvironment(), ...env },
    nodeVersion: process.versions.node,
    userName: userInfo().username,
    invocation: 'parley',
    onSignal(handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    isTerminalClosed: () => false,
    onExit: () => () => undefined,
    onOutputLost: () => undefined,
    hideEnvironment: () => null,
    exitNow: (code) => {
      throw new Error(`a command in this process wants to end it with ${code}`);
    },
  };
  const running = import('../../src/cli/program.ts').then(({ run }) => run(args, io));
  const exited = running.finally(() => {
    stdout.end();
    stderr.end();
  });
  return {
    ...{ stdin, stdout, stderr, exited },
    signal(name) {
      for (const handler of handlers) handler(name);
    },
  };
}

/** Runs one command as `runCli` does: in a process of its own in long tests, otherwise in the process of the test. */
export async function runCommand(
  args: readonly string[],
  { workingDirectory = process.cwd(), input = '' } = {},
): Promise<CliOutcome> {
  if (hasLongTests) return runCli(args, { workingDirectory, input });
  const { stdin, stdout, stderr, exited } = startInProcess(args, workingDirectory);
  stdin.end(input);
  const [code, ...outputs] = await Promise.all([exited, text(stdout), text(stderr)]);
  return outcomeOf(code, ...outputs);
}
