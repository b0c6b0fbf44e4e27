import { ParleyError, type Refusal, refusal, sizeOf } from '../../kernel/index.ts';

/** What the publisher gets for a post that is not in the log. */

/** For the fields of an entry besides its content. */
const ENVELOPE_BYTES = 4_096;

/** Null: it fits. */
export function tooLarge(post: object, room: number): Refusal | null {
  const size = sizeOf(post) + ENVELOPE_BYTES;
  if (size <= room) return null;
  return refusal(
    'TOO_LARGE',
    `this post is ${size} bytes as an entry; the broker accepts ${room}`,
    'post a shorter text, or put it in a file and name the file',
  );
}

/** A damaged log is not retryable: its posts become dead letters, and later posts do not wait. */
export function damagedLog(error: unknown): Refusal | null {
  if (!(error instanceof ParleyError) || error.code !== 'LOG_CORRUPT') return null;
  return refusal(error.code, error.message, error.hint);
}

/** The decision threw. */
export function isUndecided(error: unknown): error is ParleyError {
  return error instanceof ParleyError && error.code === 'DECISION_FAILED';
}

/** For a decision that threw each time. Null: another fault. */
export function undecidable(error: unknown, times: number): Refusal | null {
  if (!isUndecided(error)) return null;
  return refusal(error.code, `${error.message} (tried ${times} times)`, error.hint);
}

export function noConversation(id: string): ParleyError {
  return new ParleyError('NOT_FOUND', `there is no conversation ${id}`, {
    hint: 'post a message to begin one; `parley ls` lists the conversations',
  });
}
