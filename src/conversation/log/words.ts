import type { TeamChange } from './entry.ts';

/** What a person did with a call that waited: below the call, and as a sentence. */
const ANSWERS: Readonly<Record<string, readonly [string, string]>> = {
  approve: ['Approved', 'approved this call'],
  deny: ['Denied', 'denied this call'],
  rerun: ['Run again', 'had this call run again'],
  failed: ['Marked as failed', 'marked this call as failed'],
  result: ['Result given', 'gave the result of this call'],
};

/** `isChanged`: with other arguments. `always`, `grant`: of the entry. */
export function answeredBy(
  answer: string,
  by: string,
  { isChanged, always, grant }: Readonly<{ isChanged?: boolean; always?: true; grant?: number }> = {},
): string {
  if (isChanged) return `Approved with changed arguments by ${by}`;
  if (answer === 'expired') return 'Expired: it was not answered in time';
  const words = Object.hasOwn(ANSWERS, answer) ? ANSWERS[answer] : undefined;
  const lasting = always || grant !== undefined ? ' for this conversation' : '';
  return `${words?.[0] ?? answer} by ${by}${lasting}${grant === undefined ? '' : ` in entry ${grant}`}`;
}

export function answeredFirst(answer: string, by: string): string {
  const words = Object.hasOwn(ANSWERS, answer) ? ANSWERS[answer] : undefined;
  return `${by} ${words?.[1] ?? 'answered this call'} first.`;
}

const MOST_PARTS = 4;

/** In one line: `pm: persona, model`. */
export function teamChangeText({
  agent,
  change,
  parts,
}: Pick<TeamChange, 'agent' | 'change'> & { readonly parts: readonly string[] }): string {
  if (change !== 'changed') return `${agent} ${change}`;
  const more = parts.length > MOST_PARTS ? ` and ${parts.length - MOST_PARTS} more` : '';
  return `${agent}: ${parts.slice(0, MOST_PARTS).join(', ')}${more}`;
}
