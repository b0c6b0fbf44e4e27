import { type ChildProcess, spawn } from 'node:child_process';
import {
  deserializeMessage,
  type JSONRPCMessage,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client';
import { within } from '../../kernel/index.ts';
import { asIs, type Enclose, OrphanWatch, signalGroup } from '../processes.ts';
import { LONGEST_MESSAGE, MessageTooLarge } from './failure.ts';

/**
 * A server that runs as a child process, over its standard streams.
 *
 * CHILD-TRANSPORT-1 The child leads its own process group, which is ended as a whole: `npx some-server` is three processes, and
 *    ending the first leaves the server running. (The SDK's transport does not do this.)
 * CHILD-TRANSPORT-2 To end it: close its input, then SIGTERM, then SIGKILL, `endMs` apart. When the leader has ended, the rest of
 *    the group is killed at once.
 * CHILD-TRANSPORT-3 `onclose` is called once, after the leader has ended, even if a descendant holds its pipes open.
 * CHILD-TRANSPORT-4 The child gets only the given environment.
 * CHILD-TRANSPORT-5 The child does not outlive the daemon, even after `kill -9`.
 * CHILD-TRANSPORT-6 A message that is too long is discarded, and the connection is closed.
 * CHILD-TRANSPORT-7 If a child sends requests and does not read the answers, the connection is closed.
 */

const KEPT_WORDS = 2000;
const PIPES_GRACE_MS = 500;

export interface ChildSettings {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole of its environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly directory: string;
  readonly endMs: number;
  readonly enclose?: Enclose | undefined;
}

export class ChildTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  /** With `pid`, tells the SDK that this is a child process: silence is an old server, not an outage. */
  readonly stderr = null;
  readonly #settings: ChildSettings;
  /** The beginning of a line. */
  #line = Buffer.alloc(0);
  #child: ChildProcess | null = null;
  #ended: Promise<void> = Promise.resolve();
  #closing: Promise<void> | null = null;
  #words = '';

  constructor(settings: ChildSettings) {
    this.#settings = settings;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** The end of its standard error. */
  lastWords(): string {
    return this.#words.replace(/^[\uDC00-\uDFFF]/, '').trim();
  }

  async start(): Promise<void> {
    const { env, directory, enclose = asIs } = this.#settings;
    const { command, args } = enclose(this.#settings);
    const child = spawn(command, args, {
      cwd: directory,
      env: { ...env }, // CHILD-TRANSPORT-4
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true, // CHILD-TRANSPORT-1
      windowsHide: true,
    });
    this.#child = child;
    this.#listen(child);
    if (child.pid !== undefined) this.#watch(child, child.pid);
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve);
      child.once('error', reject);
    });
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const input = this.#child?.stdin;
    if (!input?.writable) throw new Error('the server does not run');
    if (input.writableLength > LONGEST_MESSAGE) {
      void this.close();
      throw new Error('the server does not read what it is sent');
    }
    await new Promise<void>((resolve, reject) => {
      input.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  #listen(child: ChildProcess): void {
    this.#ended = new Promise((resolve) => {
      const over = () => {
        this.onclose?.();
        resolve();
      };
      child.once('close', over);
      child.once('exit', () => {
        if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL'); // CHILD-TRANSPORT-2
        const pipes = setTimeout(() => {
          for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy();
        }, PIPES_GRACE_MS); // CHILD-TRANSPORT-3
        child.once('close', () => clearTimeout(pipes));
      });
      child.on('error', (error) => {
        this.onerror?.(error);
        if (child.pid === undefined) resolve(); // never started: there will be no `close`
      });
    });
    child.stdin?.on('error', (error) => this.onerror?.(error));
    child.stdout?.on('data', (chunk: Buffer) => this.#read(chunk));
    const decoder = new TextDecoder();
    child.stderr?.on('data', (chunk: Buffer) => {
      this.#words = (this.#words + decoder.decode(chunk, { stream: true })).slice(-KEPT_WORDS);
    });
  }

  #watch(child: ChildProcess, pid: number): void {
    const watch = new OrphanWatch();
    void watch.failure.then((error) => this.onerror?.(error));
    watch.guard(pid);
    child.once('exit', () => watch.over());
  }

  #read(chunk: Buffer): void {
    if (this.#closing) return;
    this.#line = Buffer.concat([this.#line, chunk]);
    for (let end = this.#line.indexOf('\n'); end >= 0; end = this.#line.indexOf('\n')) {
      const line = this.#line.subarray(0, end).toString();
      this.#line = this.#line.subarray(end + 1);
      this.#take(line);
    }
    if (this.#line.length <= LONGEST_MESSAGE) return;
    this.#line = Buffer.alloc(0);
    this.onerror?.(new MessageTooLarge());
    void this.close();
  }

  /** Invalid lines are reported and skipped: many programs print a greeting. (The SDK's buffer hides them.) */
  #take(line: string): void {
    try {
      this.onmessage?.(deserializeMessage(line));
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** CHILD-TRANSPORT-2 */
  async #end(): Promise<void> {
    const child = this.#child;
    if (child?.pid === undefined) return;
    child.stdin?.end();
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      if ((await within(this.#settings.endMs, this.#ended)) !== null) return;
      signalGroup(child.pid, signal);
    }
    await this.#ended;
  }
}
