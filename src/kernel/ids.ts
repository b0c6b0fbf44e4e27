import { ulid } from 'ulid';

/** A source of unique, unpredictable, roughly time-ordered ids (ULID, 26 characters). Injected, so that the core stays pure. */
export type NewId = () => string;

export const createIdSource = (): NewId => () => ulid();
