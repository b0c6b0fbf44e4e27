import { createHash } from 'node:crypto';
import { NAME_PATTERN } from '../conversation/index.ts';

const READABLE = 64;
const DIGITS = 32;

/**
 * The conversation that a client's own id (a thread, a context) names: the id itself where it is a legal one, else its
 * readable characters and 128 bits of its digest. Such an id is an ordinary one: whoever knows it can use it directly,
 * and two ids never share one.
 */
export function conversationOf(id: string): string {
  if (NAME_PATTERN.test(id)) return id;
  const readable = id
    .slice(0, READABLE)
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  // As JSON: UTF-8 would make all lone surrogates one.
  const digest = createHash('sha256').update(JSON.stringify(id)).digest('hex').slice(0, DIGITS);
  return `${readable || 'thread'}-${digest}`;
}
