import { headers, type MsgHdrs } from 'nats';
import type { Entry } from '../../conversation/index.ts';
import type { Standing } from '../port.ts';

/**
 * One append as one message: `{"entries":[…]}`, as followers of `parley.log` read it.
 *
 * APPEND-MESSAGE-1 `Parley-Append` is unique to one attempt to append: by it a writer whose acknowledgement was lost finds its own.
 * APPEND-MESSAGE-2 `Parley-Length` is the log's length with this append, so that the last message alone tells the length.
 * APPEND-MESSAGE-3 A message without `Parley-Append` is no append: somebody published on the subject. It is passed over.
 * APPEND-MESSAGE-4 `Parley-Claim` (`<daemon>:<epoch>`) and `Parley-Owes` say whose the conversation is and whether something is under way.
 */

export const APPEND_HEADER = 'Parley-Append';
const LENGTH_HEADER = 'Parley-Length';
/** Compare-and-set: the server takes a message only behind this sequence of its subject. */
export const EXPECTED_HEADER = 'Nats-Expected-Last-Subject-Sequence';
const CLAIM_HEADER = 'Parley-Claim';
const OWES_HEADER = 'Parley-Owes';
/** Of the payload, for the headers: the server counts them in. */
export const HEADER_ROOM = 384;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true }); // no letter is made up for bytes that are none
const FRAME_BYTES = '{"entries":[]}'.length;

/** Bytes of the body that these entries make; `json` is theirs. */
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
  standing?: Standing,
): MsgHdrs {
  const made = headers();
  made.set(APPEND_HEADER, id);
  made.set(LENGTH_HEADER, `${length}`);
  if (lastSequence !== null) made.set(EXPECTED_HEADER, `${lastSequence}`);
  if (standing) {
    const { claim, owes } = standing;
    if (claim) made.set(CLAIM_HEADER, `${claim.daemon}:${claim.epoch}`);
    made.set(OWES_HEADER, owes ? '1' : '0');
  }
  return made;
}

/** APPEND-MESSAGE-4: null where the append says nothing of it. */
export function standingOf(made: MsgHdrs | undefined): Standing | null {
  const owes = made?.get(OWES_HEADER) ?? '';
  if (made === undefined || appendOf(made) === null || owes === '') return null;
  const [, daemon, epoch] = /^([A-Za-z0-9_-]+):(\d+)$/.exec(made.get(CLAIM_HEADER)) ?? [];
  const claim = daemon === undefined ? null : { daemon, epoch: Number(epoch) };
  return { claim, owes: owes !== '0' };
}

/** What the headers say; null for a message that is no append (APPEND-MESSAGE-3). */
export function appendOf(made: MsgHdrs | undefined): { readonly id: string; readonly length: number } | null {
  const id = made?.get(APPEND_HEADER) ?? '';
  const length = Number(made?.get(LENGTH_HEADER));
  return id === '' || !Number.isSafeInteger(length) ? null : { id, length };
}

/** The entries of an append whose first one is `from`; null when it holds something else. */
export function decodeBody(body: Uint8Array, from: number, length: number): Entry[] | null {
  try {
    const { entries } = JSON.parse(decoder.decode(body)) as { entries: Entry[] };
    const fits = entries.every((entry, place) => entry.index === from + place);
    return fits && from + entries.length === length ? entries : null;
  } catch {
    return null;
  }
}
