import { monotonicFactory } from 'ulid';

/** A source of unique, roughly time-ordered ids (ULID, 26 characters). Injected, so that the core stays pure. */
export type NewId = () => string;

export function createIdSource(): NewId {
  const next = monotonicFactory();
  return () => next();
}
