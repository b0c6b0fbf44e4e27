import { z } from 'zod';
import { cut, jsonBytes, type Refusal, refusal } from '../kernel/index.ts';
import type { DeadLetter, LetterOrigin } from './port.ts';
import type { RefusedRuns, StreamPosition } from './post.ts';

/**
 * The dead letter of a refused post, and the post that a retry sends. Pure.
 *
 * DEAD-LETTER-1 Every letter fits the broker's payload. A body that was cut is marked `truncated`.
 * DEAD-LETTER-2 A letter that is retried twice is appended once: a post without an id gets a deterministic one.
 * DEAD-LETTER-3 A retry sends exactly the posted body. If the body is no longer complete, the retry is refused.
 * DEAD-LETTER-4 A letter of many posts names each of them by its sequence and contains no body.
 */

/** Bytes of a refused body that its dead letter keeps at most. */
export const MAX_ORIGINAL_BYTES = 128 * 1024;
const MAX_REASON_CHARACTERS = 2_000;
/** The code of the letter of posts that `--skip-until` skipped. */
export const SKIPPED = 'SKIPPED';

/** A dead letter `{reason,code,hint?,id,ingress,size,original,truncated?}` of at most `maxBytes`; `original` is cut to fit. */
export function encodeDeadLetter(
  refused: Refusal,
  original: Uint8Array,
  { id, ingress }: LetterOrigin,
  maxBytes: number,
): Uint8Array {
  const kept = original.subarray(0, MAX_ORIGINAL_BYTES);
  let truncated = kept.length < original.length;
  let text = new TextDecoder('utf-8').decode(kept, { stream: truncated }); // drops half a character at the cut
  for (;;) {
    const letter = jsonBytes({
      reason: cut(refused.message, MAX_REASON_CHARACTERS),
      code: refused.code,
      ...(refused.hint !== undefined && { hint: cut(refused.hint, MAX_REASON_CHARACTERS) }),
      id,
      ingress,
      size: original.length,
      original: text,
      ...(truncated && { truncated }),
    });
    if (letter.length <= maxBytes || text === '') return letter;
    truncated = true;
    // Escapes make JSON longer than its text, so the right length is found by trying.
    text = cut(text, Math.floor(text.length * Math.min(0.9, maxBytes / letter.length)));
  }
}

export function encodeRefusedRuns(refused: Refusal, posts: RefusedRuns): Uint8Array {
  const { message: reason, code, hint } = refused;
  return jsonBytes({ reason, code, hint, size: posts.bytes, original: '', refused: posts });
}

type Place = Pick<DeadLetter, 'sequence' | 'at' | 'publisher' | 'conversation'>;

/** Accepts any message: other publishers can write to the stream, and older daemons wrote fewer fields. */
export function decodeDeadLetter(place: Place, bytes: Uint8Array): DeadLetter {
  const text = new TextDecoder('utf-8').decode(bytes);
  const { code, reason, hint, original, truncated, size, id, ingress, refused } = fieldsOf(text);
  const body = typeof original === 'string' ? original : text;
  const position = positionOf(ingress);
  const runs = runsShape.safeParse(refused).data ?? null;
  return {
    ...place,
    code: typeof code === 'string' ? code : 'UNREADABLE',
    reason: typeof reason === 'string' ? reason : 'no daemon wrote this letter',
    ...(typeof hint === 'string' && { hint }),
    ...(typeof id === 'string' && { id }),
    ...(position && { ingress: position }),
    original: body,
    ...(truncated === true && { truncated }),
    size: typeof size === 'number' ? size : Buffer.byteLength(body),
    ...(runs && { refused: runs }),
  };
}

function fieldsOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function positionOf(value: unknown): StreamPosition | null {
  if (value === null || typeof value !== 'object') return null;
  const { stream, sequence } = value as Record<string, unknown>;
  return typeof stream === 'string' && typeof sequence === 'number' ? { stream, sequence } : null;
}

const runsShape = z.object({
  stream: z.string(),
  count: z.number(),
  bytes: z.number(),
  from: z.number(),
  to: z.number(),
  runs: z.array(z.tuple([z.number(), z.number()])).min(1),
});

export type Repost =
  | { readonly ok: true; readonly body: Uint8Array; readonly id: string }
  | { readonly ok: false; readonly refusal: Refusal };

/** The body to post again, and the id to post it under unless the body names another (DEAD-LETTER-2, DEAD-LETTER-3). */
export function repostOf(letter: DeadLetter, ingressStream: string): Repost {
  const { original, sequence, at } = letter;
  if (letter.refused) return { ok: false, refusal: isOfMany(letter, letter.refused) };
  if (letter.truncated) return { ok: false, refusal: isCut(letter, ingressStream) };
  if (letter.code === 'INVALID_NAME' || letter.code === 'INVALID_UTF8' || letter.code === 'UNREADABLE')
    return { ok: false, refusal: notRetryable(letter, `it was refused for what it is: ${letter.reason}`) };
  const id = letter.id ?? `dead-${sequence}-${Date.parse(at).toString(36)}`;
  const whole: Repost = { ok: true, body: Buffer.from(original), id };
  if (!/^[ \t\n\r]*\{/.test(original)) return { ...whole, body: jsonBytes({ content: original, id }) };
  try {
    const post = JSON.parse(original) as Record<string, unknown>;
    return post.id === undefined ? { ...whole, body: jsonBytes({ ...post, id }) } : whole;
  } catch {
    return { ok: false, refusal: notRetryable(letter, `it is no JSON: ${letter.reason}`) };
  }
}

function notRetryable({ sequence }: DeadLetter, why: string): Refusal {
  return refusal(
    'NOT_RETRYABLE',
    `dead letter ${sequence} cannot be retried; ${why}`,
    `\`parley dead show ${sequence}\` prints it: correct it and post it again`,
  );
}

function isOfMany({ sequence, code }: DeadLetter, { count }: RefusedRuns): Refusal {
  return refusal(
    'NOT_RETRYABLE',
    `dead letter ${sequence} is of ${count} posts that were refused together, and contains none of them`,
    code === SKIPPED
      ? 'while the stream has these posts, `parley up --replay` answers them; otherwise their publisher has to post them again'
      : 'their publisher has to post them again, more slowly; publishers.postsPerMinute in parley.yaml is the limit',
  );
}

function isCut({ sequence, size, ingress }: DeadLetter, ingressStream: string): Refusal {
  const where = ingress
    ? `as long as stream ${ingressStream} has it, the whole is its message ${ingress.sequence}: \`nats stream get ${ingressStream} ${ingress.sequence}\``
    : 'its sender may have the whole';
  return refusal(
    'DEAD_LETTER_CUT',
    `dead letter ${sequence} holds only the beginning of a message of ${size} bytes`,
    `${where}; post the corrected message`,
  );
}
