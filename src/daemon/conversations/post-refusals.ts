import { messageOf, ParleyError, type Refusal, refusal } from '../../kernel/index.ts';

/** What whoever posted is told of a post that is not, or not yet, in its log; `fatal-posts.ts` words the rest. */

/** Room that the envelope of an entry needs beside the content. */
const ENVELOPE_BYTES = 4_096;

/** Null: as an entry it has room. */
export function tooLarge(post: object, room: number): Refusal | null {
  const size = Buffer.byteLength(JSON.stringify(post)) + ENVELOPE_BYTES;
  if (size <= room) return null;
  return refusal(
    'TOO_LARGE',
    `as an entry this post is ${size} bytes; the broker carries ${room}`,
    'post a shorter text, or put it in a file and name the file',
  );
}

const DELETED = 'CONVERSATION_DELETED';

export function isDeleted({ code }: Refusal): boolean {
  return code === DELETED;
}

export function deleted(conversation: string): Refusal {
  return refusal(
    DELETED,
    `conversation ${conversation} was deleted before this message could be kept`,
    'post it again to begin a new one',
  );
}

/** No refusal of the post, which is tried again: only of the promise that it is durable. */
export function stillWaits(error: unknown): Refusal {
  const hint = error instanceof ParleyError ? `${error.hint ?? ''} ` : '';
  return refusal(
    'POST_WAITS',
    `the message was taken, but cannot be made durable yet: ${messageOf(error)}`,
    `${hint}It waits in the ingress stream and is tried again by itself: no need to post it again.`,
  );
}

/** Waiting mends no damaged log: its posts are kept as dead letters, and nobody else waits behind them. */
export function damagedLog(error: unknown): Refusal | null {
  if (!(error instanceof ParleyError) || error.code !== 'LOG_CORRUPT') return null;
  return refusal(error.code, error.message, error.hint);
}
