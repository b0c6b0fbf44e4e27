import { createHash, timingSafeEqual } from 'node:crypto';
import { refusalOfOtherPublisher } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';

/**
 * Who may do what.
 *
 * ACCESS-1 As soon as there is one token, every request but those about health, for the console's files and codes, and for A2A's cards needs
 *    one.
 * ACCESS-2 Tokens are compared in constant time, all of them, whatever their length.
 * ACCESS-3 Whoever has a token acts as the publisher that it names, and as nobody else; where it names a person too, whatever
 *    is posted, answered or switched is that person's.
 */

export const ROLES = ['read', 'post', 'approve', 'operate'] as const;
export type Role = (typeof ROLES)[number];

export interface Token {
  readonly role: Role;
  readonly secret: string;
  /** Null: may act as any publisher, as an operator does. */
  readonly publisher: string | null;
  /** The person at this publisher who has it; absent: the publisher says who posts. */
  readonly name?: string | undefined;
}

export interface Identity extends Omit<Token, 'secret'> {
  /** Stands for the token: the same for the same one, and known to nobody without it. Never shown or kept. */
  readonly caller: string;
}

/** What each role may do: everybody who may do something may read. */
const GRANTS: Readonly<Record<Role, ReadonlySet<Role>>> = {
  read: new Set(['read']),
  post: new Set(['read', 'post']),
  approve: new Set(['read', 'approve']),
  operate: new Set(ROLES),
};

/** Where no token is needed, everybody who reaches the daemon is its operator. */
const OPERATOR: Identity = { role: 'operate', publisher: null, caller: '' };

export function identify(authorization: string | undefined, tokens: readonly Token[]): Identity {
  if (tokens.length === 0) return OPERATOR; // ACCESS-1
  const given = digest(/^Bearer +(.+)$/i.exec(authorization ?? '')?.[1] ?? '');
  const [found] = tokens.filter((token) => timingSafeEqual(given, digest(token.secret))); // ACCESS-2
  if (found) {
    const { role, publisher, name } = found;
    return { role, publisher, name, caller: given.toString('hex') };
  }
  throw new ParleyError('UNAUTHORIZED', 'this needs a token', {
    hint: 'send the header Authorization: Bearer <token>; `parley token` prints the one that the daemon made',
  });
}

export function requireRole(identity: Identity, role: Role): void {
  if (GRANTS[identity.role].has(role)) return;
  throw new ParleyError('FORBIDDEN', `a token with the role ${identity.role} may not do this`, {
    hint: `use one with the role ${role}, or operate`,
  });
}

type Body = Readonly<Record<string, unknown>>;

/** ACCESS-3: a request with who acts filled in; refused if it says somebody else. `anonymous`: who has no name of his own. */
export function actingAs(identity: Identity, body: Body, anonymous: string): Record<string, unknown> {
  const { publisher, name } = identity;
  if (publisher !== null && body.publisher !== undefined && body.publisher !== publisher) {
    throw notYou(publisher, body.publisher);
  }
  const acting = publisher === null ? { publisher: anonymous, ...body } : { ...body, publisher };
  if (name === undefined) return acting;
  const said = body.author === undefined ? name : (body.author as { name?: unknown } | null)?.name;
  if (said !== name) throw notYou(name, said);
  return { ...acting, author: { name } };
}

function notYou(own: string, other: unknown): ParleyError {
  const { code, message, hint } = refusalOfOtherPublisher(own, other);
  return new ParleyError(code, message, { hint });
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
