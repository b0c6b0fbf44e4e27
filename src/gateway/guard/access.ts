import { createHash, timingSafeEqual } from 'node:crypto';
import { type OwnPublisher, refusalOfOtherPublisher } from '../../conversation/index.ts';
import { asError, ParleyError } from '../../kernel/index.ts';

/**
 * Authentication and authorisation.
 *
 * ACCESS-1 If there is a token, every request needs one, except health, the console's files and its sign-in, and A2A's cards.
 * ACCESS-2 Tokens are compared in constant time, all of them, whatever their length.
 * ACCESS-3 A caller acts only as the publisher of its token. If the token names a person, all posts, answers and switches
 *    are that person's.
 */

const ROLES = ['read', 'post', 'approve', 'operate'] as const;
export type Role = (typeof ROLES)[number];

export interface Token {
  readonly role: Role;
  readonly secret: string;
  /** Null: may act as any publisher, as an operator does. */
  readonly publisher: string | null;
  /** The person at this publisher who owns it; absent: the publisher names the author. */
  readonly name?: string | undefined;
  /** A client of `/v1` that disconnects ends the turns of its request (OPENAI-START-1). */
  readonly stopOnDisconnect?: boolean | undefined;
}

export interface Identity extends Omit<Token, 'secret'> {
  /** Digest of the token, which cannot be computed without it. Never shown or stored. */
  readonly caller: string;
  /** The request came with the cookie of a browser that signed in. */
  readonly isSession?: true;
  /** The trace context of the request. */
  readonly traceparent?: string;
}

/** The author id of the caller's posts. `anonymous`: the publisher of one without any. */
export function authorOf({ publisher, name }: Identity, anonymous: OwnPublisher): string {
  const own = publisher ?? anonymous;
  return name === undefined ? own : `${own}/${name}`;
}

/** The permissions of each role; every role may read. */
const GRANTS: Readonly<Record<Role, ReadonlySet<Role>>> = {
  read: new Set(['read']),
  post: new Set(['read', 'post']),
  approve: new Set(['read', 'approve']),
  operate: new Set(ROLES),
};

/** Without tokens, every client is an operator. */
const OPERATOR: Identity = { role: 'operate', publisher: null, caller: '' };

export function identify(authorization: string | undefined, tokens: readonly Token[]): Identity {
  if (tokens.length === 0) return OPERATOR;
  const given = digest(/^Bearer +(.+)$/i.exec(authorization ?? '')?.[1] ?? '');
  const [found] = tokens.filter((token) => timingSafeEqual(given, digestOfToken(token)));
  if (found) return identityOf(found);
  const what = authorization === undefined ? 'this needs a token' : 'the daemon has no such token';
  throw new ParleyError('UNAUTHORIZED', what, {
    hint: 'send the header Authorization: Bearer <token>; `parley token` prints the one that the daemon made, unless the configuration has tokens',
  });
}

export function identityOf(token: Token): Identity {
  const { role, publisher, name, stopOnDisconnect } = token;
  return { role, publisher, name, stopOnDisconnect, caller: digestOfToken(token).toString('hex') };
}

export function digestOfToken({ secret }: Token): Buffer {
  return digest(secret);
}

export function hasRole(identity: Identity, role: Role): boolean {
  return GRANTS[identity.role].has(role);
}

export function requireRole(identity: Identity, role: Role): void {
  if (hasRole(identity, role)) return;
  throw new ParleyError('FORBIDDEN', `a token with the role ${identity.role} may not do this`, {
    hint: `use one with the role ${role === 'operate' ? role : `${role}, or operate`}`,
  });
}

/** Only who posted something, and operators, may end it. `author`: an id. */
export function requireAuthor(identity: Identity, author: string): void {
  if (identity.role === 'operate') return;
  requireRole(identity, 'post');
  const { publisher, name } = identity;
  const isOwn = name === undefined ? author.split('/')[0] === publisher : author === `${publisher}/${name}`;
  if (isOwn) return;
  throw new ParleyError('FORBIDDEN', 'another publisher posted this', { hint: 'an operator may cancel it' });
}

type Body = Readonly<Record<string, unknown>>;

/** ACCESS-3: sets the publisher and author; refuses others. `anonymous`: publisher of callers without one. */
export function actingAs(identity: Identity, body: Body, anonymous: string): Record<string, unknown> {
  const { publisher, name } = identity;
  if (publisher !== null && body.publisher !== undefined && body.publisher !== publisher) {
    throw asError(refusalOfOtherPublisher(publisher, body.publisher));
  }
  const acting = publisher === null ? { publisher: anonymous, ...body } : { ...body, publisher };
  if (name === undefined) return acting;
  const said = body.author === undefined ? name : (body.author as { name?: unknown } | null)?.name;
  if (said !== name) throw asError(refusalOfOtherPublisher(name, said));
  return { ...acting, author: { name } };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
