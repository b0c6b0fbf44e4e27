import type { Entry } from '../conversation/index.ts';
import type { Refusal } from '../kernel/index.ts';

/** What the daemon publishes, as bytes that fit. Pure. */

const encoder = new TextEncoder();
/** The most of a refused body that its dead letter keeps, in bytes. */
export const MAX_ORIGINAL_BYTES = 128 * 1024;
const MAX_REASON_CHARACTERS = 2_000;

/**
 * The messages `{"entries":[…]}` that carry these entries in order, each within `maxBytes`. An entry that does not
 * fit alone is left out: followers see the gap in `index` and ask the `entries` verb.
 */
export function packEntries(entries: readonly Entry[], maxBytes: number): Uint8Array[] {
  const frame = '{"entries":[]}'.length;
  const messages: Uint8Array[] = [];
  let batch: string[] = [];
  let size = frame;
  const flush = () => {
    if (batch.length > 0) messages.push(encoder.encode(`{"entries":[${batch.join(',')}]}`));
    batch = [];
    size = frame;
  };
  for (const entry of entries) {
    const json = JSON.stringify(entry);
    const bytes = Buffer.byteLength(json) + 1;
    if (frame + bytes > maxBytes) continue;
    if (size + bytes > maxBytes) flush();
    batch.push(json);
    size += bytes;
  }
  flush();
  return messages;
}

/** What is long in a record of the audit log: the arguments of a call and what came of it. */
const LONG_FIELDS: readonly string[] = ['arguments', 'result'];

/** A record of the audit log within `maxBytes`; else without its long fields, and `truncated`. */
export function encodeAudit(record: Readonly<Record<string, unknown>>, maxBytes: number): Uint8Array {
  const whole = encoder.encode(JSON.stringify(record));
  if (whole.length <= maxBytes) return whole;
  const short = Object.entries(record).filter(([name]) => !LONG_FIELDS.includes(name));
  return encoder.encode(JSON.stringify({ ...Object.fromEntries(short), truncated: true }));
}

/** A dead letter `{reason,code,hint?,original,truncated?}` of at most `maxBytes`; `original` is cut to fit. */
export function encodeDeadLetter(refused: Refusal, original: Uint8Array, maxBytes: number): Uint8Array {
  const kept = original.subarray(0, MAX_ORIGINAL_BYTES);
  let truncated = kept.length < original.length;
  let text = new TextDecoder('utf-8').decode(kept, { stream: truncated }); // drops half a character at the cut
  for (;;) {
    const letter = encoder.encode(
      JSON.stringify({
        reason: cut(refused.message, MAX_REASON_CHARACTERS),
        code: refused.code,
        ...(refused.hint !== undefined && { hint: cut(refused.hint, MAX_REASON_CHARACTERS) }),
        original: text,
        ...(truncated && { truncated }),
      }),
    );
    if (letter.length <= maxBytes || text === '') return letter;
    truncated = true;
    // Escapes make JSON longer than its text, so the right length is found by trying.
    text = cut(text, Math.floor(text.length * Math.min(0.9, maxBytes / letter.length)));
  }
}

/** The first `length` UTF-16 units, never ending in half a character. */
export function cut(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}
