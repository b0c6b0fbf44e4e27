import type { Readable, Writable } from 'node:stream';
import type { ClientOptions, ParleyClient } from '../client/index.ts';
import type { Config, LoadOptions } from '../config/index.ts';

/** SIGHUP: the terminal was closed, or a daemon reads its configuration again. */
export type EndSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** The process, as commands use it. `main.ts` creates the real one; tests run commands in-process with their own. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  /** Node's, without the `v`. */
  readonly nodeVersion: string;
  /** The operating system's name of the user; null if it has none. */
  readonly userName: string | null;
  /** The words that start a command: `parley`, `npx parleyd`, or `npm run … --` in a project or checkout. */
  readonly invocation: string;
  /** Calls back for each of these signals until the returned function is called. */
  onSignal(handler: (signal: EndSignal) => void): () => void;
  /** The process began on a terminal that exists no more. */
  isTerminalClosed(): boolean;
  /** Calls back once when the process ends, except by an unhandled signal. Returns a function that cancels it. */
  onExit(handler: () => void): () => void;
  /** Calls back once when stdout has no reader any more. Then that no longer ends the process. */
  onOutputLost(handler: () => void): void;
  /** Hides the variables of this process from other programs. Returns the reason why it cannot; null: they are hidden. */
  hideEnvironment(): string | null;
  /** Ends the process at once. */
  exitNow(code: number): void;
}

/** The other modules that commands use. Tests replace them. */
export interface CliDependencies {
  connect(options: ClientOptions): Promise<ParleyClient>;
  loadConfig(options: LoadOptions): Promise<Config>;
  /** Loaded on demand, because most commands only connect to a daemon. */
  daemon(): Promise<DaemonModule>;
}

export type DaemonModule = typeof import('../daemon/index.ts');

export function realDependencies(): CliDependencies {
  return {
    connect: async (options) => (await import('../client/index.ts')).connect(options),
    loadConfig: async (options) => (await import('../config/index.ts')).loadConfig(options),
    daemon: () => import('../daemon/index.ts'),
  };
}
