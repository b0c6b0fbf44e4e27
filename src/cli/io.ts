import type { Readable, Writable } from 'node:stream';

/** SIGHUP: the terminal was closed. */
export type EndSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

/** All that a command has of the process, so that tests run commands in-process. Only `main.ts` makes the real one. */
export interface Io {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  /** Node's, without the `v`. */
  readonly nodeVersion: string;
  /** The name of the person at the keyboard, by the operating system's word; null if it has none. */
  readonly userName: string | null;
  /** How this person types a command: `parley`, or npm's way in a checkout. */
  readonly invocation: string;
  /** Calls back for each of these signals until the returned function is called. */
  onSignal(handler: (signal: EndSignal) => void): () => void;
  /** Calls back once, when the process ends in any way but a signal that it does not handle. Returns how to cancel. */
  onExit(handler: () => void): () => void;
  /**
   * From now on a stdout that nobody reads any more is told to this handler, once, and ends nothing. For whoever has
   * more to do than to print.
   */
  onOutputLost(handler: () => void): void;
  /** Ends the process at once: where waiting for it is not wanted, or has no end. */
  exitNow(code: number): void;
}
