import { setMaxListeners } from 'node:events';
import { ANY, CONVERSATION_VERBS, createSubjects, PUBLISHER_VERBS, type Subjects } from '../bus/index.ts';
import {
  CredentialMonitor,
  type NatsConnection,
  type NatsOptions,
  openNats,
  refusedCredentials,
} from '../bus/nats/index.ts';
import type { Entry, FilePart, LiveChunk } from '../conversation/index.ts';
import { createIdSource, isRecord, type JsonRecord, type ParleyError, parseJson } from '../kernel/index.ts';
import { type AgentHandler, type Connected, flush, type RunningAgent, runAgent } from './agent.ts';
import { type Answer, type AskOptions, askAgents, type Question, type Shape, type ValueOf } from './ask.ts';
import {
  type DownloadOptions,
  download,
  type FileContent,
  type Pieces,
  type UploadOptions,
  upload,
} from './files.ts';
import {
  type Arrival,
  type FollowEvent,
  type FollowOptions,
  type FollowSource,
  followConversation,
} from './follow.ts';
import { DEFAULT_POLICY, type RequestPolicy, sendRequest } from './requests.ts';
import type { AnswerOf, Endpoint, PostAnswer, PostMessage, PostOptions, RequestOf } from './verbs.ts';

export interface ClientOptions extends NatsOptions {
  /** The daemon's `subjectPrefix`; `parley` by default. */
  readonly prefix?: string;
  /** How patiently requests are made. */
  readonly requests?: Partial<RequestPolicy>;
}

/** A connection to one daemon, or to several that share the work. Every failure is a `ParleyError`. */
export interface ParleyClient {
  /** The servers, without credentials; with commas where there are several. */
  readonly url: string;
  /** Bytes that one message may hold. */
  readonly maxPayload: number;
  /**
   * Posts a message; resolves once it is durable in the log. A lost answer does no harm: every attempt carries the same
   * id.
   */
  post(message: PostMessage, options?: PostOptions): Promise<PostAnswer>;
  /**
   * Posts a message and resolves with its answer: runs the tools that it brings, and follows until every turn that it caused has
   * ended. Rejects if one of them did not complete.
   */
  ask<Parameters, S extends Shape = Record<never, never>>(
    question: Question<Parameters, S>,
    options?: AskOptions,
  ): Promise<Answer<ValueOf<S>>>;
  /** Stores a file, which a message may then name: `post({ content, parts: [part] })`. Nothing of it is kept if it rejects. */
  upload(content: FileContent, options?: UploadOptions): Promise<FilePart>;
  /** The bytes of a file that a message of this conversation names. Rejects at the end if they are damaged. */
  download(conversation: string, sha256: string, options?: DownloadOptions): AsyncIterable<Uint8Array>;
  request<E extends Endpoint>(
    endpoint: E,
    body: RequestOf<E>,
    options?: { signal?: AbortSignal },
  ): Promise<AnswerOf<E>>;
  /** Each entry once, in order, and the live text (`followConversation`). */
  follow(conversation: string, options?: FollowOptions): AsyncIterable<FollowEvent>;
  /**
   * Runs an agent: each turn that the daemon offers to `slug` (an agent file with `runtime: bus`) goes to the handler.
   * Instances of the same slug share its turns. Resolves when the server knows the subscription.
   */
  agent(slug: string, handler: AgentHandler): Promise<RunningAgent>;
  /** Ends what follows and the agents, and closes the connection. May be called twice. */
  close(): Promise<void>;
}

/** `url`: without users and passwords. */
export async function openClient(options: ClientOptions, url: string): Promise<ParleyClient> {
  const subjects = createSubjects(options.prefix); // refuses a bad prefix before anything is opened
  const connection = await openNats({ name: 'parley-client', ...options });
  const policy = { ...DEFAULT_POLICY, ...options.requests };
  return createClient(connection, subjects, url, policy, (cause) => refusedCredentials(url, options, cause));
}

function createClient(
  connection: NatsConnection,
  subjects: Subjects,
  url: string,
  policy: RequestPolicy,
  /** The error when the server refuses these credentials on a reconnection. */
  refused: (cause?: unknown) => ParleyError,
): ParleyClient {
  const newId = createIdSource();
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // one for each follower
  const refusal = new CredentialMonitor();
  const { reconnections, losses } = watchConnection(connection, refusal);
  const connected: Connected = { connection, subjects, reconnections, closing: closing.signal };

  const request = async <E extends Endpoint>(
    endpoint: E,
    body: RequestOf<E>,
    { signal, asOperator = false }: PostOptions = {},
  ): Promise<AnswerOf<E>> => {
    // The publisher's own subject, which a server's permissions can bind to credentials.
    const isBound = !asOperator && PUBLISHER_VERBS.has(endpoint);
    const publisher = isBound && 'publisher' in body ? body.publisher : undefined;
    const place = CONVERSATION_VERBS.has(endpoint) && 'conversation' in body ? body.conversation : undefined;
    const outgoing = { subject: subjects.api(endpoint, publisher, place), endpoint, body };
    if (refusal.isRefused) throw refused(); // the server answers no request of this connection
    try {
      return (await sendRequest(connection, outgoing, policy, signal)) as AnswerOf<E>;
    } catch (error) {
      throw refusal.isRefused && !signal?.aborted ? refused(error) : error;
    }
  };

  const pieces: Pieces = { send: request, maxPayload: connection.info?.max_payload ?? 0 };
  const client: ParleyClient = {
    url,
    maxPayload: connection.info?.max_payload ?? 0,
    request,
    post: (message, options) => request('post', { ...message, id: message.id ?? newId() }, options),
    upload: (content, uploadOptions = {}) => upload(pieces, newId(), content, uploadOptions),
    download: (conversation, sha256, downloadOptions = {}) =>
      download(pieces, conversation, sha256, downloadOptions),
    async *follow(conversation, followOptions = {}) {
      const source: FollowSource = {
        subscribe: (live, onArrival) => subscribe(connected, conversation, live, onArrival),
        page: (from, signal) => request('entries', { conversation, from }, { signal }),
        closing: closing.signal,
      };
      const onLost = () => followOptions.onReachable?.(false);
      losses.add(onLost);
      try {
        yield* followConversation(source, followOptions);
      } finally {
        losses.delete(onLost);
      }
    },
    ask: (question, askOptions = {}) => askAgents(client, question, askOptions),
    agent: (slug, handler) => runAgent(connected, slug, handler),
    async close() {
      closing.abort();
      await connection.close();
    },
  };
  return client;
}

/** Callbacks, not iterators, so that both subjects keep the order in which the server sent them. */
async function subscribe(
  { connection, subjects, reconnections }: Connected,
  conversation: string,
  live: boolean,
  onArrival: (arrival: Arrival) => void,
): Promise<() => void> {
  const feed = connection.subscribe(subjects.log(conversation), {
    callback: (error, message) => {
      const entries = error ? null : entriesOf(message.data);
      if (entries) onArrival({ kind: 'entries', entries });
    },
  });
  const tokens =
    live &&
    connection.subscribe(subjects.live(conversation, ANY), {
      callback: (error, message) => {
        const chunk = error ? null : chunkOf(message.data);
        const agent = message?.subject.split('.').at(-1);
        if (chunk && agent) onArrival({ kind: 'live', agent, chunk });
      },
    });
  const onReconnect = () => onArrival({ kind: 'reconnected' });
  reconnections.add(onReconnect);
  const unsubscribe = () => {
    reconnections.delete(onReconnect);
    if (connection.isClosed()) return;
    feed.unsubscribe();
    if (tokens) tokens.unsubscribe();
  };
  try {
    await flush(connection, 'cannot subscribe');
    return unsubscribe;
  } catch (error) {
    unsubscribe();
    throw error;
  }
}

/** One status loop per connection, which ends when it closes. Returns the listeners to call on each reconnection and loss. */
function watchConnection(connection: NatsConnection, refusal: CredentialMonitor) {
  const reconnections = new Set<() => void>();
  const losses = new Set<() => void>();
  void (async () => {
    for await (const status of connection.status()) {
      refusal.take(status);
      if (status.type === 'reconnect') for (const listener of reconnections) listener();
      if (status.type === 'disconnect') for (const listener of losses) listener();
    }
  })();
  return { reconnections, losses };
}

/** Null for a message that is not Parley's: it must not end the follower. */
function entriesOf(data: Uint8Array): readonly Entry[] | null {
  const body = parse(data);
  if (!body || !Array.isArray(body.entries)) return null;
  return body.entries.filter((entry) => typeof entry?.index === 'number' && typeof entry.type === 'string');
}

function chunkOf(data: Uint8Array): LiveChunk | null {
  const body = parse(data);
  if (!body || typeof body.delta !== 'string' || typeof body.n !== 'number') return null;
  if (typeof body.turnId !== 'string' || typeof body.call !== 'string') return null;
  return body as unknown as LiveChunk; // clients skip unknown types
}

function parse(data: Uint8Array): JsonRecord | null {
  const body = parseJson(Buffer.from(data).toString());
  return isRecord(body) ? body : null;
}
