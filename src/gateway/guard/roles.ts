import { ROUTES, routerPath } from '../rest/routes.ts';
import type { Role } from './access.ts';

/**
 * Which role each route needs: one table for all doors, asked before any of them.
 *
 * ROLES-1 A route that is not here needs `operate`: what was forgotten is closed, not open.
 * ROLES-2 A route may need more once its body was read (what an agent's answer does, which tool is called): then its door
 *    asks `requireRole` besides.
 */

/** Null: nobody is asked who he is. */
type Needed = Role | null;

/** By method and path, as the router has them; what leads to the request API says so in its own rows. */
const DECLARED: Readonly<Record<string, Needed>> = {
  ...Object.fromEntries(
    ROUTES.map((route) => [`${route.method.toUpperCase()} ${routerPath(route)}`, route.role]),
  ),

  'GET /healthz': null,
  'GET /readyz': null,
  'GET /': null,
  'GET /assets/:name': null,
  'POST /api/console-token': null, // it takes codes

  'GET /metrics': 'read',
  'GET /api/openapi.json': 'read',
  'GET /api/identity': 'read',
  'GET /api/conversations/:conversation/events': 'read',

  'GET /v1/models': 'read',
  'GET /v1/models/:model': 'read',
  'POST /v1/chat/completions': 'post',

  // ROLES-2: what they need depends on what is asked.
  'POST /mcp': 'read',
  'POST /ag-ui/:agent': 'read',
  'GET /a2a': 'read',
  'POST /a2a/:agent': 'read',

  // Public by A2A: clients learn from a card that they need a token.
  'GET /.well-known/agent-card.json': null,
  'GET /a2a/:agent/.well-known/agent-card.json': null,
};

export interface RouteName {
  readonly method: string;
  readonly path: string;
}

/** Undefined: it is not in the table. */
export function declaredRole({ method, path }: RouteName): Needed | undefined {
  const key = `${method} ${path}`;
  return Object.hasOwn(DECLARED, key) ? DECLARED[key] : undefined;
}

/** ROLES-1 */
export function roleOf(route: RouteName): Needed {
  const declared = declaredRole(route);
  return declared === undefined ? 'operate' : declared;
}
