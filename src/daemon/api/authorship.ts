import {
  type AddressedPost,
  type AnswerOf,
  type ApiRequest,
  authorOf,
  decodePost,
  metaFault,
  type RequestOf,
  type StreamPosition,
  type Verb,
} from '../../bus/index.ts';
import {
  type Author,
  NAME_PATTERN,
  type OwnPublisher,
  type Roster,
  refusalOfAgentName,
  refusalOfOtherPublisher,
} from '../../conversation/index.ts';
import { asError, jsonBytes, type NewId, ParleyError, parseTraceparent } from '../../kernel/index.ts';

/** The author of a request, and the post that it makes. */

/** Throws `FORBIDDEN`: a publisher with a subject of its own acts under no other name. */
export function refuseOther(sender: string | null, named: unknown): void {
  if (sender === null || named === undefined || named === sender) return;
  throw asError(refusalOfOtherPublisher(sender, named));
}

interface AskedPost {
  readonly post: AddressedPost;
  /** The size of its body on the bus. */
  readonly bytes: number;
}

/** The post of a request. Throws its refusal. */
export function askedPost(
  body: unknown,
  sender: string | null,
  newId: NewId,
  { isBound, traceparent }: { readonly isBound: boolean; readonly traceparent?: string | undefined },
): AskedPost {
  const inherited = parseTraceparent(traceparent ?? '') ? { traceparent } : {};
  const asked: Record<string, unknown> = { ...inherited, ...asObject(body) };
  const { conversation: to, publisher: named, ...post } = asked;
  const from = sender ?? named;
  refuseOther(sender, named);
  const lossy = metaFault(post.meta); // it is written as JSON again below
  if (lossy) throw asError(lossy);
  const id = typeof post.id === 'string' ? post.id : newId();
  const bytes = jsonBytes({ ...post, id: post.id ?? id });
  const names = { publisher: asName(from, 'publisher'), conversation: asName(to, 'conversation') };
  const decoded = decodePost({
    ...names,
    body: bytes,
    messageId: null,
    fallbackId: id,
    isNameBound: isBound,
  });
  if (decoded.ok) return { post: decoded.post, bytes: bytes.length };
  throw asError(decoded.refusal);
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

/** The author where a request names none: the plain subjects are the operator's. */
export const OPERATOR: OwnPublisher = 'operator';

interface Actor {
  readonly publisher?: string | undefined;
  readonly author?: { readonly name: string } | undefined;
}

/**
 * The author of a command in the log: a publisher or a person at it, as for a post, and never with the name of an agent
 * (L17).
 */
export function operatorOf(
  { publisher = OPERATOR, author }: Actor,
  roster: Roster,
  isBound: boolean,
): Author {
  const decoded = authorOf(publisher, author?.name, isBound);
  if (!decoded.ok) throw asError(decoded.refusal);
  const { id, name } = decoded.value;
  const taken = refusalOfAgentName(decoded.value, roster);
  if (taken !== null) throw asError(taken);
  return { kind: 'person', id, name };
}

/**
 * PERSON-5: whether the caller may use any name. An operator may, and so may each caller on a server that the daemon manages;
 * an HTTP token binds the name that it has, or none.
 */
export function isNameBound(
  { publisher, name }: Pick<ApiRequest, 'publisher' | 'name'>,
  isManagedServer: boolean,
): boolean {
  return publisher === null || (name === undefined ? isManagedServer : name !== null);
}

/** The caller, as far as the transport knows. */
export interface Caller {
  /** The publisher whose subject or token the request came by. */
  readonly sender: string | null;
  readonly isBound: boolean;
  /** PERSON-6: it has the rights of an operator. */
  readonly mayOperate: boolean;
  readonly upTo: StreamPosition | undefined;
  readonly origin: number | null | undefined;
  /** The trace context of the request. */
  readonly traceparent: string | undefined;
}

export type Handler<V extends Verb> = (
  request: RequestOf<V>,
  caller: Caller,
) => AnswerOf<V> | Promise<AnswerOf<V>>;

/** A verb of the contract without a handler does not compile. */
export type Handlers = { readonly [V in Verb]: Handler<V> };
