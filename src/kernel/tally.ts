/** Counts by key; what is counted down to nothing is forgotten. Returns the new count. */
export function tally<Key>(counts: Map<Key, number>, key: Key, by: 1 | -1): number {
  const count = Math.max(0, (counts.get(key) ?? 0) + by);
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
  return count;
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
