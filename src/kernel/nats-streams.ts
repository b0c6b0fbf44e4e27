import { ParleyError } from './errors.ts';
import { isRecord } from './json.ts';
import type { Log } from './log.ts';

/**
 * The streams of a NATS server, for the bus and for the store.
 *
 * NATS-STREAMS-1 Settings that correctness depends on are enforced on existing streams too. If the server refuses, the start
 *    fails and names the field, its value and the required value.
 * NATS-STREAMS-2 Only settings that the server echoes count as set: old servers drop unknown ones silently.
 * NATS-STREAMS-3 If a stream cannot be created but exists afterwards, another daemon has created it. The server's error does
 *    not tell: it may name the stream or its subjects.
 * NATS-STREAMS-4 If the server has too little storage for a new stream, a smaller one is requested, down to `LEAST_BYTES`.
 */

/** JetStream's error numbers. Unlike the error texts they are the same in all versions. */
export const STREAM_NOT_FOUND = 10059;
export const MESSAGE_NOT_FOUND = 10037;
/** Compare-and-set failed. 10164 since 2.11 on streams with replicas. */
export const WRONG_LAST_SEQUENCE: ReadonlySet<number> = new Set([10071, 10164]);
/** `max_bytes_required` of an account. */
export const LIMIT_REQUIRED = 10113;
/** The account, the server, its disk or a stream has no storage left. */
const OUT_OF_SPACE = new Set([10023, 10028, 10047, 10077]);

/** A server that answers at all does so within this time. Milliseconds. */
const FIRST_ANSWER_MS = 1_200;
/** What the client throws then. */
const TIMED_OUT = 'TIMEOUT';
/** A server with less storage cannot be used. */
const LEAST_BYTES = 16 * 1024 ** 2;

/** The number of an error that the server answered; null: it is another error. */
export function apiErrorCode(error: unknown): number | null {
  const answered = isRecord(error) ? error.api_error : undefined;
  return isRecord(answered) && typeof answered.err_code === 'number' ? answered.err_code : null;
}

export function isOutOfSpace(error: unknown): boolean {
  return OUT_OF_SPACE.has(apiErrorCode(error) ?? 0);
}

/** A server that was just started can lose the first question whether it has JetStream, so it is asked once more. */
export async function openManager<Manager>(connection: {
  jetstreamManager(options: { timeout?: number; checkAPI?: boolean }): Promise<Manager>;
}): Promise<Manager> {
  const answered = await connection.jetstreamManager({ timeout: FIRST_ANSWER_MS }).then(
    () => true,
    (error: unknown) => {
      if (isRecord(error) && error.code === TIMED_OUT) return false;
      throw error;
    },
  );
  return connection.jetstreamManager({ checkAPI: !answered });
}

interface StreamSettings {
  readonly name: string;
  readonly subjects?: readonly string[];
  readonly max_bytes?: number;
}

/** The part of the client that manages streams. */
interface Streams<Info> {
  info(name: string): Promise<Info>;
  add(settings: object): Promise<Info>;
  update(name: string, settings: object): Promise<Info>;
}

interface StreamPlan {
  /** Enforced (NATS-STREAMS-1). */
  readonly binding: StreamSettings;
  /** Only for a new stream: later an operator may change it. */
  readonly defaultRoom?: { readonly max_bytes?: number; readonly max_msgs?: number };
  readonly log?: Log | undefined;
  /** It was changed. */
  readonly onUpdated?: (before: StreamSettings) => void;
  /** `doing`: "create stream PARLEY_IN". */
  error(cause: unknown, doing: string): ParleyError;
}

/** Creates or updates a stream. */
export async function ensureStream<Info extends { readonly config: StreamSettings }>(
  streams: Streams<Info>,
  plan: StreamPlan,
): Promise<Info> {
  const { binding, defaultRoom, log, onUpdated, error: errorOf } = plan;
  const { name } = binding;
  const found = await findStream(streams, name, errorOf);
  if (found) refuseOtherPrefix(found.config, binding);
  if (found && streamDifferences(found.config, binding).length === 0) return found;
  const wanted = found ? binding : { ...binding, ...defaultRoom };
  let made: Info;
  try {
    made = await (found ? streams.update(name, wanted) : streams.add(wanted));
  } catch (error) {
    const code = apiErrorCode(error);
    if (found && code !== null && code !== LIMIT_REQUIRED) throw streamConflict(found.config, wanted, error);
    if (found) throw errorOf(error, `update stream ${name}`);
    if (code !== null && (await findStream(streams, name, errorOf))) return ensureStream(streams, plan);
    const { max_bytes: bytes = 0 } = wanted;
    const less = Math.floor(bytes / 2);
    if (!isOutOfSpace(error) || less < LEAST_BYTES)
      throw errorOf(error, `create stream ${name}${bytes > 0 ? ` with room for ${bytes} bytes` : ''}`);
    log?.warn(
      { stream: name, wanted: bytes, asked: less },
      'the server has too little storage: requesting a smaller stream',
    ); // NATS-STREAMS-4
    return ensureStream(streams, { ...plan, defaultRoom: { ...defaultRoom, max_bytes: less } });
  }
  if (streamDifferences(made.config, wanted).length > 0) throw streamConflict(made.config, wanted); // NATS-STREAMS-2
  if (found) onUpdated?.(found.config);
  return made;
}

/** Null: there is none. */
export async function findStream<Info>(
  streams: Pick<Streams<Info>, 'info'>,
  name: string,
  errorOf: StreamPlan['error'],
): Promise<Info | null> {
  try {
    return await streams.info(name);
  } catch (error) {
    if (apiErrorCode(error) === STREAM_NOT_FOUND) return null;
    throw errorOf(error, `look up stream ${name}`);
  }
}

/**
 * Refuses a stream whose subjects differ from the wanted ones only in their prefix. Prefixes that differ only in case, or in `.` and
 * `_`, share stream names, and each daemon would remove the other's subjects.
 */
function refuseOtherPrefix(seen: StreamSettings, { name, subjects = [] }: StreamSettings): void {
  for (const wanted of subjects) {
    const tail = /\.[a-z]+(\.\*)*$/.exec(wanted)?.[0] ?? wanted;
    const other = seen.subjects?.find((subject) => subject !== wanted && subject.endsWith(tail));
    if (other === undefined || seen.subjects?.includes(wanted)) continue;
    const [theirs, ours] = [other, wanted].map((subject) => subject.slice(0, -tail.length));
    throw new ParleyError(
      'STREAM_CONFIG_CONFLICT',
      `stream ${name} belongs to the subject prefix ${theirs}, not to ${ours}; nothing was changed`,
      {
        hint: `set subjectPrefix to ${theirs} to use this stream, or to a prefix that differs not only in case`,
      },
    );
  }
}

/** The settings in which a stream differs from what is required, in words. Servers omit settings that are off. */
function streamDifferences(seen: object, wanted: object): string[] {
  const found: Record<string, unknown> = { ...seen };
  const isOff = (value: unknown) => value === false || value === 0;
  return Object.entries(wanted)
    .filter(([at, value]) => {
      const now = found[at] ?? (isOff(value) ? value : undefined);
      return JSON.stringify(now) !== JSON.stringify(value);
    })
    .map(([at, value]) => `${at} is ${JSON.stringify(found[at])}, must be ${JSON.stringify(value)}`);
}

function streamConflict(seen: object, wanted: StreamSettings, cause?: unknown): ParleyError {
  const fields = streamDifferences(seen, wanted).join('; ');
  return new ParleyError(
    'STREAM_CONFIG_CONFLICT',
    `stream ${wanted.name} has the wrong configuration: ${fields}`,
    { hint: `back up and delete stream ${wanted.name}, or choose another subjectPrefix`, cause },
  );
}
