import { createHash, randomInt } from 'node:crypto';
import { ulid } from 'ulid';

/** A source of unique, unpredictable, roughly time-ordered ids (ULID, 26 characters). Injected, so that the core stays pure. */
export type NewId = () => string;

/** `randomInt` takes its bytes from a store; `ulid` alone asks the system for each of its 16 random characters. */
export const createIdSource = (): NewId => () => ulid(undefined, () => randomInt(32) / 32);

/** SHA-256 as 64 hexadecimal digits. */
export const sha256Of = (data: string | Uint8Array): string =>
  createHash('sha256').update(data).digest('hex');
