/** The id of a call in requests (V7, L10): providers repeat their own ids. */

interface Place {
  readonly index: number;
  readonly position: number;
}

export function wireCallId({ index, position }: Place): string {
  return `c${index}_${position}`;
}

/** The inverse; null: it is no id of a call. */
export function placeOfCallId(id: string): Place | null {
  const [, index, position] = /^c(\d{1,15})_(\d{1,15})$/.exec(id) ?? [];
  return index === undefined ? null : { index: Number(index), position: Number(position) };
}

const DIGITS = 16;

/**
 * The id of an approval: `<conversation>.<index of its request>.<digest of the call and its arguments>`.
 *
 * APPROVAL-ID-1 An id names one request of one log, so an answer to it can release no call of another conversation and none
 *    with other arguments.
 * APPROVAL-ID-2 An id is never authority by itself: an answer counts only for a call that waits in that log under exactly this id.
 *
 * `digest`: hexadecimal, at least `DIGITS` long.
 */
export function approvalIdOf(conversation: string, index: number, digest: string): string {
  return `${conversation}.${index}.${digest.slice(0, DIGITS)}`;
}

/** The conversation that an id names; null: it is the id of no approval. */
export function conversationOfApproval(id: string): string | null {
  return /^([A-Za-z0-9_-]{1,128})\.\d{1,15}\.[0-9a-f]{16}$/.exec(id)?.[1] ?? null;
}
