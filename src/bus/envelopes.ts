import type { Entry } from '../conversation/index.ts';

/** Messages that the daemon publishes, as bytes within the broker's limit. */

const encoder = new TextEncoder();

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

/** The fields of an audit record that can be long. */
const LONG_FIELDS: readonly string[] = ['arguments', 'result'];

/** A record of the audit log within `maxBytes`; else without its long fields, and `truncated`. */
export function encodeAudit(record: Readonly<Record<string, unknown>>, maxBytes: number): Uint8Array {
  const whole = encoder.encode(JSON.stringify(record));
  if (whole.length <= maxBytes) return whole;
  const short = Object.entries(record).filter(([name]) => !LONG_FIELDS.includes(name));
  return encoder.encode(JSON.stringify({ ...Object.fromEntries(short), truncated: true }));
}

/** The first `length` UTF-16 units, without half a character at the end. */
export function cut(text: string, length: number): string {
  return text.length <= length ? text : text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}
