/** Freezes plain data all the way down, so that a mistake shows where it is made. Other objects are left as they are. */
export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== Array.prototype) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
