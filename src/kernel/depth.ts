/**
 * What is nested deeper than this is refused: parsing it works, but walking or writing it again would overflow the
 * stack, and one such text would then stop the daemon.
 */
export const MAX_DEPTH = 64;

/** True if no value stands deeper than so many objects and arrays; what holds itself does. Does not recurse. */
export function isShallow(value: unknown, most: number = MAX_DEPTH): boolean {
  let level = new Set(isContainer(value) ? [value] : []);
  for (let depth = 1; level.size > 0; depth += 1) {
    if (depth > most) return false;
    // A set: what is held in many places (aliases in YAML) is looked at once.
    level = new Set([...level].flatMap((container) => Object.values(container).filter(isContainer)));
  }
  return true;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
