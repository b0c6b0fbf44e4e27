import { setTimeout as pause } from 'node:timers/promises';
import type { JetStreamClient } from 'nats';
import { NAME_PATTERN } from '../../../conversation/index.ts';
import { messageOf, ParleyError, type Refusal } from '../../../kernel/index.ts';
import { encodeDeadLetter, encodeRefusedRuns } from '../../dead-letter.ts';
import type { BusLog, Delivery, RefusedRuns } from '../../port.ts';
import { isLegalId } from '../../post.ts';
import { ANY, type Subjects } from '../../subjects.ts';
import type { ConnectionWatch } from '../connection/connection-life.ts';
import type { DeadShare } from './dead-share.ts';

/** Replaces a name that cannot be a subject token. */
const INVALID_TOKEN = '_invalid';
/** Replaces the conversation in the subject of a dead letter of many posts. */
export const SEVERAL = '_several';
const PUBLISH_TIMEOUT_MS = 5_000;
const SHORTEST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

export interface DeadLetterOptions {
  readonly jetstream: JetStreamClient;
  readonly subjects: Subjects;
  readonly log: BusLog;
  readonly maxPayload: () => number;
  readonly watch: ConnectionWatch;
  /** Creates the streams that are missing. */
  readonly ensureStreams: () => Promise<unknown>;
  readonly share: DeadShare;
  /** Aborted when the bus closes. */
  readonly closing: AbortSignal;
}

/** The subject of a dead letter, also for a refused post with invalid names. */
export function deadSubject(subjects: Subjects, publisher: string, conversation: string): string {
  const token = (name: string) => (NAME_PATTERN.test(name) ? name : INVALID_TOKEN);
  return subjects.dead(token(publisher), token(conversation));
}

/**
 * Stores the dead letter of a refused post and returns its sequence. Retries until the stream has it, because the post is
 * settled then. Rejects with `BUS_CLOSED` if the bus closes first; the post is refused again after a restart. The server keeps one
 * letter, also if two daemons refuse the post at once, or if its confirmation is lost.
 */
export async function publishDead(
  options: DeadLetterOptions,
  delivery: Delivery,
  refused: Refusal,
  id: string,
): Promise<number> {
  const { publisher, conversation, body, messageId, fallbackId, position: ingress, isNameBound } = delivery;
  const msgID = [publisher, conversation, ingress.stream, ingress.sequence, delivery.takenAt]
    .map((part) => encodeURIComponent(part))
    .join(' ');
  const subject = deadSubject(options.subjects, publisher, conversation);
  const origin = {
    id: id || legalId(messageId) || fallbackId,
    ingress,
    ...(isNameBound !== undefined && { isNameBound }),
  };
  const encode = () => encodeDeadLetter(refused, body, origin, options.maxPayload());
  return keepLetter(options, subject, encode, { msgID });
}

/** As `publishDead`, for many posts of one publisher. */
export function publishRefusedRuns(
  options: DeadLetterOptions,
  publisher: string,
  posts: RefusedRuns,
  refused: Refusal,
): Promise<number> {
  const subject = deadSubject(options.subjects, publisher, SEVERAL);
  return keepLetter(options, subject, () => encodeRefusedRuns(refused, posts));
}

async function keepLetter(
  { jetstream, subjects, log, closing, watch, ensureStreams, share }: DeadLetterOptions,
  subject: string,
  encode: () => Uint8Array,
  once: { readonly msgID?: string } = {},
): Promise<number> {
  for (let wait = SHORTEST_PAUSE_MS; ; wait = Math.min(wait * 2, LONGEST_PAUSE_MS)) {
    await watch.connected(LONGEST_PAUSE_MS, closing);
    if (closing.aborted) throw busClosed(subject);
    try {
      const letter = encode();
      const { seq } = await jetstream.publish(subject, letter, { ...once, timeout: PUBLISH_TIMEOUT_MS });
      const publisher = subjects.parseDead(subject)?.publisher ?? INVALID_TOKEN;
      void share.stored(subjects.dead(publisher, ANY), letter.length);
      return seq;
    } catch (error) {
      if (closing.aborted) throw busClosed(subject);
      log.warn({ subject, reason: messageOf(error) }, 'a dead letter could not be stored; retrying');
    }
    await pause(wait, undefined, { signal: closing }).catch(() => undefined);
    await ensureStreams().catch(() => undefined);
  }
}

/** Null for an illegal id, which may be why the post was refused. */
function legalId(messageId: string | null): string | null {
  return messageId !== null && isLegalId(messageId) ? messageId : null;
}

function busClosed(subject: string): ParleyError {
  return new ParleyError('BUS_CLOSED', `the bus closed before a dead letter for ${subject} was stored`, {
    hint: 'nothing to do: the post is read and refused again at the next start',
  });
}
