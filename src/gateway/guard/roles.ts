import { ROUTES, routerPath } from '../rest/routes.ts';
import type { Role } from './access.ts';

/**
 * The role that each route needs: one table, checked before any handler.
 *
 * ROLES-1 A route that is missing here needs `operate`: the default is closed.
 * ROLES-2 A handler that needs another role after the body was read (an answer, a tool call) calls `requireRole`.
 */

/** Null: public. */
type Needed = Role | null;

/** By method and path of the router. Routes of the request API declare their role in `ROUTES`. */
const DECLARED: Readonly<Record<string, Needed>> = {
  ...Object.fromEntries(
    ROUTES.map((route) => [`${route.method.toUpperCase()} ${routerPath(route)}`, route.role]),
  ),

  'GET /healthz': null,
  'GET /readyz': null,
  'GET /': null,
  'GET /assets/:name': null,
  'POST /api/console-token': null, // uses one-time codes

  'GET /metrics': 'read',
  'GET /api/openapi.json': 'read',
  'GET /api/identity': 'read',
  'GET /api/conversations/:conversation/export': 'read',
  'GET /api/conversations/:conversation/events': 'read',
  'GET /api/events': 'read',

  'GET /v1/models': 'read',
  'GET /v1/models/:model': 'read',
  'POST /v1/chat/completions': 'post',

  // ROLES-2: the role depends on the request.
  'POST /mcp': 'read',
  'POST /ag-ui/:agent': 'read',
  'GET /a2a': 'read',
  'POST /a2a/:agent': 'read',

  // Public in A2A: clients learn from the card that they need a token.
  'GET /.well-known/agent-card.json': null,
  'GET /a2a/:agent/.well-known/agent-card.json': null,
};

export interface RouteName {
  readonly method: string;
  readonly path: string;
}

/** Undefined: not in the table. */
export function declaredRole({ method, path }: RouteName): Needed | undefined {
  const key = `${method} ${path}`;
  return Object.hasOwn(DECLARED, key) ? DECLARED[key] : undefined;
}

export function roleOf(route: RouteName): Needed {
  const declared = declaredRole(route);
  return declared === undefined ? 'operate' : declared;
}
