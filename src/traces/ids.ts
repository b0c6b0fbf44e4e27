import { createHash } from 'node:crypto';

/**
 * TRACE-IDS-1  An id is the beginning of a SHA-256 over names that the log contains: every export of a log, by any daemon,
 *              at any time, has the same ids.
 * TRACE-IDS-2  An id exists before its span ends: it depends on what is in the log when the work begins.
 */
export type Thing = 'trace' | 'post' | 'turn' | 'model' | 'tool' | 'approval' | 'summary';

export function traceIdOf(...names: readonly string[]): string {
  return hashOf('trace', names).slice(0, 32);
}

export function spanIdOf(thing: Exclude<Thing, 'trace'>, ...names: readonly string[]): string {
  return hashOf(thing, names).slice(0, 16);
}

function hashOf(thing: Thing, names: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([thing, ...names]))
    .digest('hex');
}
