import { createHash } from 'node:crypto';
import { NAME_PATTERN } from '../conversation/index.ts';

const READABLE = 64;

/**
 * The conversation for a client's id (a thread, a context): the id itself if it is valid, else its readable characters
 * and 128 bits of its digest. The result is an ordinary id that any client can use; two ids never share one.
 */
export function conversationOf(id: string): string {
  if (NAME_PATTERN.test(id)) return id;
  const readable = id
    .slice(0, READABLE)
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  return `${readable || 'thread'}-${digest(id)}`;
}

/** 128 bits of a JSON value: in UTF-8 all lone surrogates would be equal. */
export function digest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 32);
}
