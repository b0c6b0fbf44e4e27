import type { Entry, EntryOf } from './entry.ts';

/** By index of the answer: the newest `feedback` of each person, without what they took back. */
export function feedbackIn(entries: readonly Entry[]): ReadonlyMap<number, readonly EntryOf<'feedback'>[]> {
  const found = new Map<number, readonly EntryOf<'feedback'>[]>();
  for (const entry of entries)
    if (entry?.type === 'feedback') found.set(entry.on, withFeedback(found.get(entry.on), entry));
  return found;
}

/** Feedback replaces that of the same person. */
export function withFeedback(
  known: readonly EntryOf<'feedback'>[] = [],
  given: EntryOf<'feedback'>,
): readonly EntryOf<'feedback'>[] {
  const others = known.filter(({ author }) => author.id !== given.author.id);
  return given.value === 'none' ? others : [...others, given];
}
