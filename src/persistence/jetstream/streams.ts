import {
  DiscardPolicy,
  type JetStreamManager,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from 'nats';
import { refuseOtherPrefix, streamConflict, streamDifferences } from '../../kernel/index.ts';
import { apiErrorCode, STREAM_NOT_FOUND, storeError } from './broker.ts';

/**
 * The streams of the store.
 *
 * JETSTREAM-STREAMS-1 Settings that the laws need are enforced on existing streams too; replicas stay as the operator chose.
 *                     No byte limit: before 2.10.5 nats-server drops the oldest messages at one (CAPACITY-1).
 * JETSTREAM-STREAMS-2 A setting counts only if the server returns it: old servers drop unknown settings silently.
 * JETSTREAM-STREAMS-3 If a stream cannot be created but exists afterwards, another daemon has created it. The server's error does
 *                     not tell: it may name the stream or its subjects.
 */

export interface StoreNames {
  readonly logStream: string;
  readonly auditStream: string;
  readonly blobStream: string;
  readonly stateBucket: string;
  readonly outputBucket: string;
  log(conversation: string): string;
  audit(conversation: string): string;
  blob(content: string): string;
}

/** Matches every conversation in a subject. */
export const ANY = '*';
/** The shortest window that servers accept. Messages here have no broker id: the log has its own. */
const DUPLICATE_WINDOW_MS = 100;

/** Returns the id of the logs. */
export async function ensureStoreStreams(manager: JetStreamManager, names: StoreNames): Promise<string> {
  for (const { name, subject } of [
    { name: names.logStream, subject: names.log(ANY) },
    { name: names.auditStream, subject: names.audit(ANY) },
    { name: names.blobStream, subject: names.blob(ANY) },
  ]) {
    await ensureStream(manager, binding(name, subject));
  }
  return idOf(manager, names);
}

/** The id of the logs. It changes when their stream is created again. */
export async function idOf(manager: JetStreamManager, { logStream }: StoreNames): Promise<string> {
  try {
    return `${logStream} ${(await manager.streams.info(logStream)).created}`;
  } catch (error) {
    throw storeError(error, `look up stream ${logStream}`);
  }
}

function binding(name: string, subject: string): Partial<StreamConfig> & { name: string } {
  return {
    name,
    subjects: [subject],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_age: 0,
    max_bytes: -1,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    deny_delete: true,
    deny_purge: false,
    allow_rollup_hdrs: false,
    sealed: false,
    duplicate_window: nanos(DUPLICATE_WINDOW_MS),
  };
}

async function ensureStream(
  manager: JetStreamManager,
  wanted: Partial<StreamConfig> & { name: string },
): Promise<StreamConfig> {
  const found = await streamConfigOf(manager, wanted.name);
  for (const subject of wanted.subjects ?? []) refuseOtherPrefix(wanted.name, found?.subjects ?? [], subject);
  if (found && streamDifferences(found, wanted).length === 0) return found;
  try {
    const made = found
      ? await manager.streams.update(wanted.name, wanted)
      : await manager.streams.add(wanted);
    return confirmed(made.config, wanted);
  } catch (error) {
    if (apiErrorCode(error) !== null) {
      if (found) throw streamConflict(found, wanted, error);
      if (await streamConfigOf(manager, wanted.name)) return ensureStream(manager, wanted); // JETSTREAM-STREAMS-3
    }
    throw storeError(error, `create stream ${wanted.name}`);
  }
}

export async function streamConfigOf(manager: JetStreamManager, name: string): Promise<StreamConfig | null> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (error) {
    if (apiErrorCode(error) === STREAM_NOT_FOUND) return null;
    throw storeError(error, `look up stream ${name}`);
  }
}

function confirmed(seen: StreamConfig, wanted: Partial<StreamConfig> & { name: string }): StreamConfig {
  if (streamDifferences(seen, wanted).length > 0) throw streamConflict(seen, wanted);
  return seen;
}
