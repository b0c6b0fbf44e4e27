/** Counts by key; what is counted down to nothing is forgotten. Returns the new count. */
export function tally<Key>(counts: Map<Key, number>, key: Key, by: 1 | -1): number {
  const count = Math.max(0, (counts.get(key) ?? 0) + by);
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
  return count;
}

/** Sets a key as the newest one, and forgets the oldest beyond so many. */
export function remember<Key, Value>(known: Map<Key, Value>, key: Key, value: Value, most: number): void {
  known.delete(key);
  known.set(key, value);
  const [oldest] = known.keys();
  if (known.size > most && oldest !== undefined) known.delete(oldest);
}

/** The items by key, each list in their order. */
export function groupedBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
