import { createHash, timingSafeEqual } from 'node:crypto';
import { ParleyError } from '../../kernel/index.ts';

/**
 * Who may do what.
 *
 * G1 As soon as there is one token, every request but those about health and for the console's files needs one.
 * G2 Tokens are compared in constant time, all of them, whatever their length.
 * G3 Whoever has a token acts as the publisher that it names, and as nobody else.
 */

export const ROLES = ['read', 'post', 'approve', 'operate'] as const;
export type Role = (typeof ROLES)[number];

export interface Token {
  readonly role: Role;
  readonly secret: string;
  /** Null: may act as any publisher, as an operator does. */
  readonly publisher: string | null;
}

export interface Identity {
  readonly role: Role;
  readonly publisher: string | null;
}

/** What each role may do: everybody who may do something may read. */
const GRANTS: Readonly<Record<Role, ReadonlySet<Role>>> = {
  read: new Set(['read']),
  post: new Set(['read', 'post']),
  approve: new Set(['read', 'approve']),
  operate: new Set(ROLES),
};

/** Whoever reaches a daemon without tokens works on its machine. */
const OPERATOR: Identity = { role: 'operate', publisher: null };

export function identify(authorization: string | undefined, tokens: readonly Token[]): Identity {
  if (tokens.length === 0) return OPERATOR; // G1
  const given = digest(/^Bearer +(.+)$/i.exec(authorization ?? '')?.[1] ?? '');
  const [found] = tokens.filter((token) => timingSafeEqual(given, digest(token.secret))); // G2
  if (found) return found;
  throw new ParleyError('UNAUTHORIZED', 'this needs a token', {
    hint: 'send the header Authorization: Bearer <token>',
  });
}

export function requireRole(identity: Identity, role: Role): void {
  if (GRANTS[identity.role].has(role)) return;
  throw new ParleyError('FORBIDDEN', `a token with the role ${identity.role} may not do this`, {
    hint: `use one with the role ${role}, or operate`,
  });
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
