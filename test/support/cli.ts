import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** The command line in its own process. */
export interface CliOutcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Each line of stdout, as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the output of a command as a script does
  json(): any[];
}

export interface CliOptions {
  readonly workingDirectory?: string;
  /** Written to its stdin, which is then closed. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Ends the command (SIGTERM) if it still runs. */
  readonly signal?: AbortSignal;
  /** Overrides the timeout, for a slow command. */
  readonly patienceMs?: number;
  /** The launcher of another package. */
  readonly program?: string;
  /** Receives each chunk of its stdout. */
  readonly onOutput?: (soFar: string) => void;
}

/** The launcher of the package that was built for this test run (`test/support/package.ts`). */
export const LAUNCHER_VARIABLE = 'PARLEY_TEST_LAUNCHER';

/** The launcher of the package for this test run, or of the checkout if there is none. */
export const launcher: string =
  process.env[LAUNCHER_VARIABLE] ?? fileURLToPath(new URL('../../bin/parley.js', import.meta.url));

/** Longer than any command needs: a command that hangs fails its test and leaves no process. */
const PATIENCE_MS = 45_000;

/**
 * The caller's environment without variables that configure Parley, and with the server under test (`NATS_BIN`).
 */
export function strangersEnvironment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(PARLEY_|OPENAI_|ANTHROPIC_|NATS_(?!BIN$)|VITEST|NODE_ENV|NODE_OPTIONS)/.test(name),
  );
  return { ...Object.fromEntries(entries), NO_COLOR: '1' };
}

export async function runCli(args: readonly string[], options: CliOptions = {}): Promise<CliOutcome> {
  const child = spawn(process.execPath, [options.program ?? launcher, ...args], {
    cwd: options.workingDirectory,
    env: { ...strangersEnvironment(), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    options.onOutput?.(stdout);
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  child.stdin.on('error', () => undefined); // The command may end before it has read everything.
  child.stdin.end(options.input ?? '');
  const tooLong = setTimeout(() => child.kill('SIGKILL'), options.patienceMs ?? PATIENCE_MS);
  const end = () => void child.kill('SIGTERM');
  options.signal?.addEventListener('abort', end, { once: true });
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(tooLong);
  options.signal?.removeEventListener('abort', end);
  return outcomeOf(code, stdout, stderr);
}

export function outcomeOf(code: number | null, stdout: string, stderr: string): CliOutcome {
  return {
    code,
    stdout,
    stderr,
    json: () =>
      stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line)),
  };
}
