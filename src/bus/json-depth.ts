/**
 * JSON nested deeper than this is refused: parsing it works, but writing it again would overflow the stack,
 * and one such post would then stop the daemon.
 */
export const MAX_JSON_DEPTH = 64;

/** True if no value stands deeper than `MAX_JSON_DEPTH` objects and arrays. Does not recurse. */
export function isShallow(value: unknown): boolean {
  let level: object[] = isContainer(value) ? [value] : [];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > MAX_JSON_DEPTH) return false;
    level = level.flatMap((container) => Object.values(container).filter(isContainer));
  }
  return true;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
