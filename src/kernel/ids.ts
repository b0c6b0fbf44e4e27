import { ulid } from 'ulid';

/** A source of unique, roughly time-ordered ids (ULID, 26 characters). Injected, so that the core stays pure. */
export type NewId = () => string;

/** No id tells the next one: the id of an approval is known only to those who were shown the call. */
export function createIdSource(): NewId {
  return () => ulid();
}
