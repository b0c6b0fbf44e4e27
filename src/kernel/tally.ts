/** Counts by key; what is counted down to nothing is forgotten. Returns the new count. */
export function tally<Key>(counts: Map<Key, number>, key: Key, by: 1 | -1): number {
  const count = Math.max(0, (counts.get(key) ?? 0) + by);
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
  return count;
}
