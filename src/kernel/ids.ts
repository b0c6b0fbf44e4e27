import { randomFillSync } from 'node:crypto';
import { ulid } from 'ulid';

/** A source of unique, roughly time-ordered ids (ULID, 26 characters). Injected, so that the core stays pure. */
export type NewId = () => string;

/** Ids are unpredictable. */
export function createIdSource(): NewId {
  const random = pooledRandom();
  return () => ulid(undefined, random);
}

/** Bytes for 256 ids: `ulid` alone asks the system for each of its 16 random characters. */
const POOL = 4_096;

/** Each byte of the pool becomes one number from 0 to below 1, once. */
function pooledRandom(): () => number {
  const pool = new Uint8Array(POOL);
  let at = POOL;
  return () => {
    if (at === POOL) {
      randomFillSync(pool);
      at = 0;
    }
    const value = (pool[at] ?? 0) / 256;
    at += 1;
    return value;
  };
}
