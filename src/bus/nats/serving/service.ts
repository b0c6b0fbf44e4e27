import { hostname } from 'node:os';
import {
  ErrorCode,
  headers,
  type NatsConnection,
  NatsError,
  RequestStrategy,
  type Service,
  type ServiceMsg,
} from 'nats';
import { NAME_PATTERN } from '../../../conversation/index.ts';
import { messageOf, ParleyError, refusal, sleep, tally, VERSION } from '../../../kernel/index.ts';
import { CONVERSATION_VERBS, PUBLISHER_VERBS } from '../../contract.ts';
import { decodeRequest, encodeAnswer, logFault, refusalOfFault } from '../../envelopes.ts';
import type { ApiAnswer, ApiHandler, BusLog } from '../../port.ts';
import { ANY, mayAnswerTo, REPLY_HINT, type Subjects } from '../../subjects.ts';

/**
 * The request API as a NATS micro service.
 *
 * SERVICE-1 Every request is answered, also when the handler throws: a rejection in the client library would end the process.
 * SERVICE-2 No answer exceeds the broker's maximum payload; a larger one becomes an error that the caller can read.
 * SERVICE-3 `parley.api.<verb>.<publisher>` exists for the verbs that act as a publisher, so that NATS permissions can restrict
 *    it. That of `post` may name the conversation too; the body then names the same one or none.
 * SERVICE-4 The client library encodes the answer to `$SRV.PING` once, and the metadata in INFO and STATS each time. `state`
 *    changes and is added after `services.add`, so that INFO and STATS have it and PING does not.
 * SERVICE-5 One publisher may have `MOST_IN_PROGRESS` requests in progress, beside posts, which have a rate; more are refused. A
 *    request is in progress until the server has its answer: a short one may open a log, or be answered with a part of a file.
 */

const MOST_IN_PROGRESS = 64;
const REFUSED_REPLY = `a request was not executed: its reply subject is not an inbox; ${REPLY_HINT}`;
/** Bytes reserved for the error headers. */
const HEADER_ROOM = 1_024;

interface ServiceOptions {
  readonly connection: NatsConnection;
  readonly subjects: Subjects;
  readonly log: BusLog;
  /** Semantic version of the daemon, as `nats micro info` shows it. */
  readonly version: string;
  readonly maxPayload: () => number;
  /** Where the daemon's logs are. */
  readonly store: StoreKind;
  readonly work?: 'migration';
}

export interface RunningService {
  /** Rejects if another daemon serves here. */
  register(): Promise<void>;
  /** Starts to answer requests. */
  listen(endpoints: readonly string[], handler: ApiHandler): Promise<void>;
  /** Accepts no new requests; resolves when the current ones are answered. */
  stop(): Promise<void>;
}

/** Starts a service without endpoints: visible to other daemons, but answering no requests yet. */
export async function startService(options: ServiceOptions): Promise<RunningService> {
  const { connection, subjects, log, version, store, work } = options;
  const { prefix } = subjects;
  const presence: Presence = {
    prefix,
    host: hostname(),
    pid: `${process.pid}`,
    store,
    ...(work && { work }),
  };
  const adding = connection.services.add({
    name: subjects.service,
    version,
    description: 'conversations of people and agents',
    queue: subjects.service,
    metadata: presence as Presence & Record<string, string>,
  });
  presence.state = 'starting';
  const service = await adding;
  const running = new Set<Promise<void>>();
  void service.stopped.then((error) => {
    if (error) log.error({ err: error }, 'the request API ended; restart the daemon');
  });
  await connection.flush(); // REGISTER-1
  return {
    register: () => register(options, service, presence),
    async listen(endpoints, handler) {
      addEndpoints(options, service, running, endpoints, handler);
      await connection.flush(); // the server has every endpoint before they are announced
    },
    async stop() {
      await service.stop();
      await Promise.all(running);
    },
  };
}

function addEndpoints(
  options: ServiceOptions,
  service: Service,
  running: Set<Promise<void>>,
  endpoints: readonly string[],
  handler: ApiHandler,
): void {
  const { subjects, log } = options;
  const inProgress = new Map<string, number>();
  const listen = (endpoint: string, name = endpoint, ...tokens: readonly string[]) => {
    service.addEndpoint(name, {
      subject: subjects.api(endpoint, ...tokens),
      handler: (error, message) => {
        if (error) return log.error({ err: error, endpoint }, 'a request could not be read');
        const bound = message.subject.slice(subjects.api(endpoint).length + 1).split('.');
        const [publisher, conversation] = [bound[0] || null, bound[1] ?? null];
        if (message.reply && !mayAnswerTo(message.reply))
          return log.warn({ endpoint, publisher, reply: message.reply }, REFUSED_REPLY);
        const received = { endpoint, publisher, conversation, message };
        const counted = endpoint === 'post' ? null : publisher;
        const isCrowded = counted !== null && (inProgress.get(counted) ?? 0) >= MOST_IN_PROGRESS;
        const work = answer(options, isCrowded ? refuseCrowd : handler, received);
        running.add(work);
        void work.finally(() => running.delete(work));
        if (counted !== null && !isCrowded) void countUntilSent(inProgress, counted, work, options);
      },
    });
  };
  for (const endpoint of endpoints) {
    listen(endpoint);
    if (PUBLISHER_VERBS.has(endpoint)) listen(endpoint, `${endpoint}-as`, ANY);
    if (CONVERSATION_VERBS.has(endpoint)) listen(endpoint, `${endpoint}-as-in`, ANY, ANY);
  }
}

/** SERVICE-5 */
async function countUntilSent(
  inProgress: Map<string, number>,
  publisher: string,
  work: Promise<void>,
  { connection }: ServiceOptions,
): Promise<void> {
  tally(inProgress, publisher, 1);
  await work;
  await connection.flush().catch(() => undefined); // it is closed
  tally(inProgress, publisher, -1);
}

const refuseCrowd: ApiHandler = async ({ publisher }) => ({
  ok: false,
  refusal: refusal(
    'RATE_LIMITED',
    `${publisher} has ${MOST_IN_PROGRESS} requests in progress`,
    'nothing was changed: send it again in 1 s',
    1,
  ),
});

interface Received {
  readonly endpoint: string;
  readonly publisher: string | null;
  readonly conversation: string | null;
  readonly message: ServiceMsg;
}

/** Never rejects (SERVICE-1). */
async function answer(options: ServiceOptions, handler: ApiHandler, received: Received): Promise<void> {
  const { endpoint, message } = received;
  try {
    respond(options, message, await handle(handler, received));
  } catch (error) {
    logFault(options.log, error, { endpoint }, 'a request failed');
    try {
      respond(options, message, { ok: false, refusal: refusalOfFault(error) });
    } catch (second) {
      options.log.warn({ err: second, endpoint }, 'a request could not be answered');
    }
  }
}

async function handle(handler: ApiHandler, received: Received): Promise<ApiAnswer> {
  const { endpoint, publisher, conversation, message } = received;
  if (publisher !== null && !NAME_PATTERN.test(publisher)) {
    const hint = 'use 1 to 128 letters, digits, _ or -';
    return {
      ok: false,
      refusal: refusal('INVALID_NAME', `publisher ${JSON.stringify(publisher)} is not allowed`, hint),
    };
  }
  const request = decodeRequest(message.data);
  if (!request.ok) return request;
  const body = conversation === null ? request.body : boundTo(conversation, request.body);
  if (body === undefined) {
    const message = `the subject names conversation ${conversation}, and the body another one`;
    return { ok: false, refusal: refusal('FORBIDDEN', message, 'leave `conversation` out of the body') };
  }
  return handler({
    endpoint,
    publisher,
    traceparent: message.headers?.get('traceparent') || undefined,
    body,
  });
}

/** SERVICE-3. Undefined: the body names another conversation. */
function boundTo(conversation: string, body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const named = (body as { conversation?: unknown }).conversation;
  return named === undefined || named === conversation ? { ...body, conversation } : undefined;
}

function respond(options: ServiceOptions, message: ServiceMsg, answered: ApiAnswer): void {
  const { body, error } = encodeAnswer(answered, options.maxPayload() - HEADER_ROOM);
  if (error) message.respondError(error.status, error.description, body, { headers: headers() });
  else message.respond(body);
}

/**
 * Reserves a server and prefix for a migration. Throws `DAEMON_ALREADY_SERVING` if a daemon serves there, and
 * `MIGRATION_RUNNING` if another migration runs. Until the release, daemons and migrations get `MIGRATION_RUNNING`.
 */
export async function reserveSubjects(
  connection: NatsConnection,
  subjects: Subjects,
  log: BusLog,
): Promise<{ release(): Promise<void> }> {
  const maxPayload = () => connection.info?.max_payload ?? 0;
  const presence = { version: VERSION, store: 'file', work: 'migration' } as const;
  const service = await startService({ connection, subjects, log, maxPayload, ...presence });
  try {
    await service.register();
  } catch (error) {
    await service.stop();
    throw error;
  }
  return { release: () => service.stop() };
}

export type StoreKind = 'file' | 'jetstream';

/** The metadata of each daemon's micro service. Its `state` changes (SERVICE-4 in `service.ts`). */
interface Presence {
  readonly prefix: string;
  readonly host: string;
  readonly pid: string;
  /** Where its logs are. */
  readonly store: StoreKind;
  /** `migration`: a migration, which excludes all daemons. */
  readonly work?: 'migration';
  state?: 'starting' | 'serving';
}

/** Enough for an answer over a wide network or from a busy process. Without any other daemon the search is shorter (REGISTER-4). */
const ANSWER_TIMEOUT_MS = 400;
/** Pause before another search while a daemon is undecided. */
const PAUSE_MS = 50;
/** REGISTER-1: more than a subscription takes to the other servers of a cluster, also over a wide network. */
const SPREAD_MS = 400;

type RegisterOptions = Pick<ServiceOptions, 'connection' | 'subjects' | 'log'>;

/**
 * Decides which daemons may serve one server and prefix. Two daemons with their own logs would both answer every post;
 * daemons whose logs are in JetStream share them and the work.
 *
 * REGISTER-1 A daemon is visible before it searches for others: of two that start together, at least one sees the other. In a
 *    cluster of servers it is visible elsewhere a little later, so there it searches until it has been visible for a while.
 *    Servers that are joined as leaf nodes do not report it: of two daemons that start on both sides at once, both may serve.
 * REGISTER-2 A serving daemon keeps serving. Of several that start together, the one with the smallest id continues once the
 *    others have ended; if one of these did not see it and serves already, that one continues.
 * REGISTER-3 Nothing is stored: a killed daemon does not answer, and so never blocks the next one.
 * REGISTER-4 On a connection without echo the own service is not asked. If the server then reports no responders, no other
 *    daemon is connected, and the search ends at once.
 *
 * Throws `DAEMON_ALREADY_SERVING`. `service` answers already (REGISTER-1), with `presence` as its metadata.
 */
async function register(options: RegisterOptions, service: Service, presence: Presence): Promise<void> {
  const own = service.info().id;
  const visibleFrom = performance.now() + (options.connection.info?.cluster ? SPREAD_MS : 0);
  for (;;) {
    const isVisible = performance.now() >= visibleFrom;
    const others = (await findOthers(options, own)).filter((other) => !canShareWith(other, presence));
    const ahead = others.find((other) => other.state === 'serving' || other.id < own);
    if (ahead) throw alreadyServing(options, ahead);
    if (others.length === 0 && isVisible) break;
    await sleep(PAUSE_MS); // REGISTER-1; REGISTER-2: the others end, or serve because they did not see this one
  }
  presence.state = 'serving';
}

/** A daemon without `store` is of a version that cannot share. */
function canShareWith(other: Other, presence: Presence): boolean {
  return other.store === 'jetstream' && presence.store === 'jetstream';
}

/** The metadata that another daemon reports. */
type Other = { readonly id: string } & { readonly [field in keyof Presence]?: string };

async function findOthers({ connection, subjects, log }: RegisterOptions, own: string): Promise<Other[]> {
  const others: Other[] = [];
  let isAnswered = false;
  try {
    const asked = connection.services.client({ strategy: RequestStrategy.Timer, maxWait: ANSWER_TIMEOUT_MS });
    for await (const { id, metadata } of await asked.info(subjects.service)) {
      isAnswered = true;
      if (id !== own && metadata?.prefix === subjects.prefix) others.push({ ...metadata, id });
    }
  } catch (error) {
    if (error instanceof NatsError && error.code === ErrorCode.NoResponders) return [];
    log.warn({ reason: messageOf(error) }, 'the search for other daemons failed');
  }
  if (!isAnswered)
    log.warn(
      {},
      `no daemon answered the search within ${ANSWER_TIMEOUT_MS} ms; continuing as the only daemon`,
    );
  return others;
}

function alreadyServing({ connection, subjects }: RegisterOptions, other: Other): ParleyError {
  const { host, pid, store, work } = other;
  if (work === 'migration') {
    const where = `${subjects.prefix}.> on nats://${connection.getServer()}`;
    return new ParleyError(
      'MIGRATION_RUNNING',
      `\`parley migrate\` (process ${pid} on ${host}) is moving the conversations of ${where}`,
      { hint: 'wait until it has ended, then try again' },
    );
  }
  const message = `another daemon (process ${pid} on ${host}, store ${store ?? 'file'}) serves ${subjects.prefix}.> on nats://${connection.getServer()}`;
  return new ParleyError('DAEMON_ALREADY_SERVING', message, {
    hint: 'stop the other daemon, start both with --store jetstream, or give this one its own subjectPrefix (parley.yaml, or PARLEY_SUBJECT_PREFIX)',
  });
}
