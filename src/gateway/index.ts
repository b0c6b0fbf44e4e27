/**
 * The HTTP server: each protocol is one folder of routes over the same port (`port.ts`). It keeps no state of conversations.
 *
 * rest/      `/api` and its OpenAPI document: routes.ts has one row for each path, handlers.ts makes it a request,
 *            openapi.ts describes it, other-routes.ts describes the other protocols
 *
 * No request is checked here that the daemon's API checks.
 */

export { type Gateway, type GatewayOptions, startGateway } from './gateway.ts';
export type { Role, Token } from './guard/access.ts';
export type { Arrival, GatewayPort, Measurement, Measurements, Wire } from './port.ts';
