import { decodePost, metaFault, type Post } from '../../bus/index.ts';
import { NAME_PATTERN } from '../../conversation/index.ts';
import { type NewId, ParleyError, type Refusal } from '../../kernel/index.ts';
import { refuseOther } from './approvals.ts';

export interface AskedPost {
  readonly post: Post;
  /** The body as it is published. */
  readonly bytes: Buffer;
}

/** A post that the request API was asked for. Throws what is wrong with it. */
export function askedPost(body: unknown, sender: string | null, newId: NewId): AskedPost {
  const { conversation: to, publisher: named, ...post } = asObject(body);
  const from = sender ?? named;
  refuseOther(sender, named);
  const lossy = metaFault(post.meta); // below it is written as JSON again
  if (lossy) throw refused(lossy);
  const id = typeof post.id === 'string' ? post.id : newId();
  const bytes = Buffer.from(JSON.stringify({ ...post, id: post.id ?? id }));
  const names = { publisher: asName(from, 'publisher'), conversation: asName(to, 'conversation') };
  const decoded = decodePost({ ...names, body: bytes, messageId: null, fallbackId: id });
  if (decoded.ok) return { post: decoded.post, bytes };
  throw refused(decoded.refusal);
}

function refused({ code, message, hint }: Refusal): ParleyError {
  return new ParleyError(code, message, { hint });
}

function asObject(body: unknown): Record<string, unknown> {
  if (body !== null && typeof body === 'object' && !Array.isArray(body))
    return body as Record<string, unknown>;
  throw new ParleyError('BAD_REQUEST', 'post: expected a JSON object', {
    hint: 'give conversation, publisher and content',
  });
}

function asName(value: unknown, what: string): string {
  if (typeof value === 'string' && NAME_PATTERN.test(value)) return value;
  const wrong = value === undefined ? `the ${what} is missing` : `${JSON.stringify(value)} is no ${what}`;
  throw new ParleyError('INVALID_NAME', `cannot post: ${wrong}`, {
    hint: `a ${what} is 1 to 128 letters, digits, _ or -`,
  });
}
