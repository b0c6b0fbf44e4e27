import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { strangersEnvironment } from './cli.ts';

/** A real terminal (a pty) with Node in it. `in-terminal.py` has its commands. */

export const hasPython = spawnSync('python3', ['--version']).status === 0;

export interface Terminal {
  /** The screen output so far; `exit N` after the program has ended. */
  screen(): string;
  tell(what: { type: string } | { columns: number } | { close: true }): void;
  /** Ends the program if it still runs. */
  end(): Promise<void>;
}

export function openTerminal(args: readonly string[]): Terminal {
  const script = fileURLToPath(new URL('in-terminal.py', import.meta.url));
  const child = spawn('python3', [script, process.execPath, ...args], {
    env: { ...strangersEnvironment(), TERM: 'xterm' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let screen = '';
  child.stdout.on('data', (data: Buffer) => {
    screen += data.toString();
  });
  child.stdin.on('error', () => undefined);
  return {
    screen: () => screen,
    tell: (what) => void child.stdin.write(`${JSON.stringify(what)}\n`),
    async end() {
      child.stdin.end(`${JSON.stringify({ close: true })}\n`);
      await closed;
    },
  };
}
