import type { ConversationSummary } from '../../client/index.ts';
import { printable } from './text.ts';

/** What agents wait for, in a few words; pure. */

type Activity = NonNullable<ConversationSummary['activity']>[number];

/** Null: it waits for nothing. */
export function waitText({ status, for: what, of }: Activity): string | null {
  if (status !== 'waiting') return null;
  const name = printable(of ?? '');
  switch (what) {
    case 'approval':
      return `approval of ${name || 'a call'}`;
    case 'outcome':
      return `a decision: ${name || 'a call'} may have run`;
    case 'question':
      return 'an answer';
    case 'agent':
      return name || 'another agent';
    case 'program':
      return `the program of ${name}`;
    case 'input':
      return 'the first message';
    default:
      return 'something newer than this command';
  }
}

/** `45s`, `12m`, `3h`, `5d`; `-` if it is not known. */
export function ageText(since: string | null, now: number): string {
  const seconds = since === null ? Number.NaN : Math.max(0, now - Date.parse(since)) / 1_000;
  if (Number.isNaN(seconds)) return '-';
  const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? [1, 's'];
  return `${Math.floor(seconds / size)}${unit}`;
}

const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'm'],
] as const;
