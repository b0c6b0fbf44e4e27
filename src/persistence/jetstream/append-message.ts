import { headers, type MsgHdrs } from 'nats';
import type { Entry } from '../../conversation/index.ts';
import type { WorkStatus } from '../port.ts';

/**
 * One append as one message: `{"entries":[…]}`, as followers of `parley.log` read it.
 *
 * APPEND-MESSAGE-1 `Parley-Append` is unique to one append. A writer whose acknowledgement was lost finds its append by it.
 * APPEND-MESSAGE-2 `Parley-Length` is the log's length after this append, so the last message alone gives the length.
 * APPEND-MESSAGE-3 A message without `Parley-Append` is not an append, and is ignored.
 * APPEND-MESSAGE-4 `Parley-Claim` (`<daemon>:<epoch>`) names the owner of the conversation, and `Parley-Owes` is `1` while it
 *                  has outstanding work.
 */

const APPEND_HEADER = 'Parley-Append';
const LENGTH_HEADER = 'Parley-Length';
/** Compare-and-set: the server accepts a message only if this is the last sequence of its subject. */
export const EXPECTED_HEADER = 'Nats-Expected-Last-Subject-Sequence';
const CLAIM_HEADER = 'Parley-Claim';
const OWES_HEADER = 'Parley-Owes';
/** Bytes of a payload that are reserved for headers: the server counts them too. */
export const HEADER_RESERVE = 384;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true }); // bytes that are not UTF-8 are damage
const FRAME_BYTES = '{"entries":[]}'.length;

/** Size of the body that `encodeBody` makes. */
export function bodySize(json: readonly string[]): number {
  return json.reduce((sum, text) => sum + Buffer.byteLength(text) + 1, FRAME_BYTES);
}

export function encodeBody(json: readonly string[]): Uint8Array {
  return encoder.encode(`{"entries":[${json.join(',')}]}`);
}

export function appendHeaders(
  id: string,
  length: number,
  lastSequence: number | null,
  status?: WorkStatus,
): MsgHdrs {
  const made = headers();
  made.set(APPEND_HEADER, id);
  made.set(LENGTH_HEADER, `${length}`);
  if (lastSequence !== null) made.set(EXPECTED_HEADER, `${lastSequence}`);
  if (status) {
    const { claim, hasOutstandingWork } = status;
    if (claim) made.set(CLAIM_HEADER, `${claim.daemon}:${claim.epoch}`);
    made.set(OWES_HEADER, hasOutstandingWork ? '1' : '0');
  }
  return made;
}

/** APPEND-MESSAGE-4. Null: the append does not say, or the message is not an append. */
export function statusOf(made: MsgHdrs | undefined): WorkStatus | null {
  const owes = made?.get(OWES_HEADER) ?? '';
  if (made === undefined || appendOf(made) === null || owes === '') return null;
  const [, daemon, epoch] = /^([A-Za-z0-9_-]+):(\d+)$/.exec(made.get(CLAIM_HEADER)) ?? [];
  const claim = daemon === undefined ? null : { daemon, epoch: Number(epoch) };
  return { claim, hasOutstandingWork: owes !== '0' };
}

/** Null for a message that is not an append (APPEND-MESSAGE-3). */
export function appendOf(made: MsgHdrs | undefined): { readonly id: string; readonly length: number } | null {
  const id = made?.get(APPEND_HEADER) ?? '';
  const length = Number(made?.get(LENGTH_HEADER));
  return id === '' || !Number.isSafeInteger(length) ? null : { id, length };
}

/** The entries of an append, if their indexes are `from` to `length` - 1; else null. */
export function decodeBody(body: Uint8Array, from: number, length: number): Entry[] | null {
  try {
    const { entries } = JSON.parse(decoder.decode(body)) as { entries: Entry[] };
    const fits = entries.every((entry, place) => entry.index === from + place);
    return fits && from + entries.length === length ? entries : null;
  } catch {
    return null; // not UTF-8, not JSON, or no list of entries: damage that the caller reports
  }
}
