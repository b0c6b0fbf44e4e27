import type { Thread } from './thread.ts';

/** How far each agent has read: by the place of the last block that it was shown. Agents at the same place together. */
export function readMarkers(thread: Thread): ReadonlyMap<number, readonly string[]> {
  const markers = new Map<number, string[]>();
  for (const [slug, { cursor }] of thread.agents) {
    const place = thread.placeOf(cursor - 1);
    if (cursor === 0 || place < 0) continue;
    markers.set(place, [...(markers.get(place) ?? []), slug]);
  }
  return markers;
}
