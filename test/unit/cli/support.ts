import { createHash } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { findNatsServer } from '../../../src/bus/nats/managed/index.ts';
import type { CliDependencies, DaemonModule, EndSignal, Io } from '../../../src/cli/io.ts';
import { run } from '../../../src/cli/program.ts';
import {
  type ClientOptions,
  type Entry,
  type FollowEvent,
  type ParleyClient,
  ParleyError,
  type PostAnswer,
  type PostMessage,
} from '../../../src/client/index.ts';
import { person } from './entries.ts';

/** Runs commands in-process against a fake daemon. */

export * from './entries.ts';

type Answers = { readonly [endpoint: string]: unknown };

export interface FakeDaemon {
  readonly client: ParleyClient;
  readonly requests: { readonly endpoint: string; readonly body: unknown }[];
  readonly posts: PostMessage[];
  readonly connections: ClientOptions[];
  readonly log: Entry[];
  /** Uploaded ones, by hash. */
  readonly files: Map<string, Uint8Array>;
  closed: number;
  /** How many times it was followed. */
  followed: number;
  /** Sent to all followers. */
  say(...events: (Entry | FollowEvent)[]): void;
  /** Reported to all followers. */
  reach(isReachable: boolean): void;
  /** The answer to a post, and what happens then. */
  onPost: (message: PostMessage) => PostAnswer | Promise<PostAnswer>;
}

/** `answers`: by endpoint. A function is called with the body of the request; an error is thrown. */
export function fakeDaemon(answers: Answers = {}): FakeDaemon {
  const listeners = new Set<(event: FollowEvent) => void>();
  const observers = new Set<(isReachable: boolean) => void>();
  const fake: FakeDaemon = {
    requests: [],
    posts: [],
    connections: [],
    log: [],
    files: new Map(),
    closed: 0,
    followed: 0,
    say(...events) {
      for (const event of events) {
        const told: FollowEvent = 'kind' in event ? event : { kind: 'entry', entry: event };
        if (told.kind === 'entry') fake.log.push(told.entry);
        for (const listener of listeners) listener(told);
      }
    },
    reach(isReachable) {
      for (const observer of observers) observer(isReachable);
    },
    onPost: (message) => posted(message, fake.log.length, []),
    client: {
      url: 'nats://fake',
      maxPayload: 1_000_000,
      async post(message) {
        fake.posts.push(message);
        return fake.onPost(message);
      },
      ask: () => Promise.reject(new Error('no command asks')),
      async upload(content, { name } = {}) {
        const read: Uint8Array[] = [];
        if (typeof content === 'function') for await (const bytes of content()) read.push(bytes);
        else if (content instanceof Uint8Array) read.push(content);
        else throw new Error('a command sends a file that can be read again');
        const bytes = Buffer.concat(read);
        const sha256 = createHash('sha256').update(bytes).digest('hex');
        fake.files.set(sha256, bytes);
        return { type: 'file', sha256, mediaType: 'text/plain', size: bytes.length, ...(name && { name }) };
      },
      async *download(_, sha256) {
        yield fake.files.get(sha256) ?? Buffer.alloc(0);
      },
      agent: () => Promise.reject(new Error('no command is an agent')),
      async request(endpoint, body) {
        fake.requests.push({ endpoint, body });
        return answerTo(endpoint, body) as never;
      },
      async *follow(_conversation, { from = 0, signal, onReachable = () => {} } = {}) {
        const waiting: FollowEvent[] = fake.log
          .filter((entry) => entry.index >= from)
          .map((entry) => ({ kind: 'entry', entry }));
        let wake = () => {};
        const listener = (event: FollowEvent) => {
          if (event.kind === 'live' || event.entry.index >= from) waiting.push(event);
          wake();
        };
        listeners.add(listener);
        observers.add(onReachable);
        fake.followed++;
        signal?.addEventListener('abort', () => wake());
        try {
          while (!signal?.aborted) {
            const next = waiting.shift();
            if (next) yield next;
            else await new Promise<void>((resolve) => (wake = resolve));
          }
        } finally {
          listeners.delete(listener);
          observers.delete(onReachable);
        }
      },
      async close() {
        fake.closed++;
      },
    },
  };
  function answerTo(endpoint: string, body: unknown): unknown {
    if (Object.hasOwn(answers, endpoint)) {
      const answer = answers[endpoint];
      if (answer instanceof Error) throw answer;
      return typeof answer === 'function' ? answer(body) : answer;
    }
    if (endpoint === 'agents') return { agents: [] };
    if (endpoint === 'approvals') return { approvals: [], more: 0 };
    if (endpoint === 'entries') {
      const { from = 0, conversation } = body as { from?: number; conversation: string };
      return { conversation, length: fake.log.length, entries: fake.log.slice(from, from + 2) };
    }
    if (endpoint === 'conversation') {
      const { conversation: id } = body as { conversation: string };
      if (fake.log.length === 0) throw new ParleyError('NOT_FOUND', `there is no conversation ${id}`);
      const agents = statusesIn(fake.log);
      return { id, phase: 'chat', mode: 'agent', activeAgent: null, length: fake.log.length, agents };
    }
    throw new Error(`the fake daemon has no answer to ${endpoint}`);
  }
  return fake;
}

/** The agents that had a turn, as the daemon reports them. */
function statusesIn(log: readonly Entry[]): Record<string, { status: string }> {
  const statuses: Record<string, { status: string }> = {};
  for (const entry of log) {
    if (entry.type === 'turn-started') statuses[entry.agent] = { status: 'running' };
    if (entry.type === 'turn-ended')
      statuses[entry.agent] = { status: entry.outcome === 'waiting' ? 'waiting' : 'idle' };
  }
  return statuses;
}

export const posted = (
  { conversation, id = 'made' }: PostMessage,
  index: number,
  agents: string[],
  duplicate = false,
): PostAnswer => ({ conversation, id, index, duplicate, agents });

interface Replies {
  readonly agents?: string[];
  readonly answers?: Answers;
  readonly before?: readonly Entry[];
}

/** A daemon that appends each post to its log, which begins with `before`, and then tells what `events` says of it. */
export function replying(
  events: (index: number, message: PostMessage) => readonly (Entry | FollowEvent)[],
  { agents = ['pm'], answers = {}, before = [] }: Replies = {},
): FakeDaemon {
  const daemon = fakeDaemon(answers);
  daemon.say(...before);
  daemon.onPost = (message) => {
    const index = daemon.log.length;
    daemon.say(
      person(index, message.content, message.id ? { id: message.id } : {}),
      ...events(index, message),
    );
    return posted(message, index, agents);
  };
  return daemon;
}
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** stdout, parsed line by line. */
  json(): unknown[];
}

export interface RunOptions {
  readonly daemon?: FakeDaemon;
  readonly dependencies?: Partial<CliDependencies>;
  readonly daemonModule?: Partial<DaemonModule>;
  readonly env?: Io['env'];
  readonly stdin?: string;
  readonly io?: Partial<Io>;
  readonly workingDirectory?: string;
  /** Whether its stdout is a terminal. */
  readonly isTerminal?: boolean;
}

/** Both ends of a terminal. */
export function terminal() {
  const stdin = Object.assign(new PassThrough(), { isTTY: true });
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  const chunks: string[] = [];
  stdout.on('data', (data: Buffer) => chunks.push(data.toString()));
  return {
    io: { stdin, stdout },
    stdin,
    type: (text: string) => stdin.write(text),
    screen: () => chunks.join(''),
  };
}

/** A running command that a test can watch and signal. */
export interface Running {
  readonly done: Promise<Ran>;
  signal(name: EndSignal): void;
  readonly exits: number[];
  output(): string;
  /** How many listeners for signals there are. */
  listeners(): number;
}

export function start(argv: string[], options: RunOptions = {}): Running {
  const { daemon = fakeDaemon(), dependencies = {}, daemonModule = {} } = options;
  const stdout = collector();
  const stderr = collector();
  const handlers = new Set<(signal: EndSignal) => void>();
  const exits: number[] = [];
  const io: Io = {
    stdin: Readable.from(options.stdin === undefined ? [] : [Buffer.from(options.stdin)]),
    stdout: Object.assign(stdout.stream, { isTTY: options.isTerminal === true }),
    stderr: stderr.stream,
    env: { PARLEY_NATS_URL: 'nats://127.0.0.1:1', NATS_BIN: '/nowhere/nats-server', ...options.env },
    workingDirectory: options.workingDirectory ?? '/nowhere',
    nodeVersion: '20.20.2',
    userName: 'alice',
    invocation: 'parley',
    onSignal(handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    isTerminalClosed: () => false,
    hideEnvironment: () => null,
    onExit: () => () => {},
    onOutputLost: (handler) => void stdout.stream.once('error', handler),
    exitNow: (code) => exits.push(code),
    ...options.io,
  };
  const allDependencies: CliDependencies = {
    async connect(to) {
      daemon.connections.push(to);
      return daemon.client;
    },
    loadConfig: async () => {
      throw new Error('this test has no configuration');
    },
    daemon: async () => {
      const checkJetStream: DaemonModule['checkJetStream'] = async (to) => {
        daemon.connections.push(to);
        return null;
      };
      return {
        enclosureFault: async () => null,
        checkJetStream,
        findNatsServer,
        ...daemonModule,
      } as DaemonModule;
    },
    ...dependencies,
  };
  const done = run(argv, io, allDependencies).then((code) => ({
    code,
    out: stdout.text(),
    err: stderr.text(),
    json: () =>
      stdout
        .text()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as unknown),
  }));
  return {
    done,
    exits,
    signal: (name) => {
      for (const handler of handlers) handler(name);
    },
    output: stdout.text,
    listeners: () => handlers.size,
  };
}

export const parley = (argv: string[], options: RunOptions = {}): Promise<Ran> => start(argv, options).done;

function collector() {
  const stream = new PassThrough();
  const chunks: Buffer[] = [];
  stream.on('data', (data: Buffer) => chunks.push(data));
  return { stream, text: () => Buffer.concat(chunks).toString() };
}
