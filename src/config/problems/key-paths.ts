import type { KeyPath } from './problems.ts';

/** Reads and changes plain data by key path. Own keys only, so that `__proto__` in a file has no effect. */

type Container = Record<string | number, unknown>;

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}

export function getAt(data: unknown, path: KeyPath): unknown {
  let value = data;
  for (const part of path) {
    if (!isContainer(value) || !Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

/** Sets a value and creates missing mappings on the path. Does nothing if a number or text is on the path. */
export function setAt(data: Container, path: KeyPath, value: unknown): void {
  let container = data;
  for (const part of path.slice(0, -1)) {
    if (!Object.hasOwn(container, part) || container[part] === null) container[part] = {};
    const next = container[part];
    if (!isContainer(next)) return;
    container = next;
  }
  const last = path.at(-1);
  if (last !== undefined) container[last] = value;
}

/** Removes a key; inside a list, the whole list's key, so that no index moves. Returns what was removed. */
export function removeAt(data: Container, path: KeyPath): KeyPath {
  const firstIndex = path.findIndex((part) => typeof part === 'number');
  const removed = firstIndex === -1 ? path : path.slice(0, firstIndex);
  const parent = getAt(data, removed.slice(0, -1));
  const last = removed.at(-1);
  if (isContainer(parent) && last !== undefined) delete parent[last];
  return removed;
}

export function isSame(left: KeyPath, right: KeyPath): boolean {
  return left.length === right.length && overlap(left, right);
}

/** True if one path is equal to the other or below it. */
export function overlap(left: KeyPath, right: KeyPath): boolean {
  const length = Math.min(left.length, right.length);
  for (let place = 0; place < length; place += 1) if (left[place] !== right[place]) return false;
  return true;
}
