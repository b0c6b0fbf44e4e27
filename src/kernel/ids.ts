import { ulid } from 'ulid';

/** A source of unique, roughly time-ordered ids (ULID, 26 characters). Injected, so that the core stays pure. */
export type NewId = () => string;

/** Ids are unpredictable: only readers of the call know the id of an approval. */
export function createIdSource(): NewId {
  return () => ulid();
}
