/**
 * The HTTP gateway. It keeps no state of conversations: requests go to the daemon through `GatewayPort`.
 *
 * gateway.ts, application.ts   the server; its routes and the guard in order; metrics
 * port.ts, context.ts          what routes need of the daemon; problem.ts: errors as problem details
 * console.ts                   the console's files; client-ids.ts: ids of clients and of the log; fields.ts: their fields
 * guard/     tokens, hosts and origins, rate, size of bodies, open requests
 * rest/      every route with its role; `/api` and the OpenAPI document; events/: `/api/conversations/<id>/events`
 * progress/  requests to the daemon, following a conversation, reading logs, event streams
 * ag-ui/, a2a/, openai/, mcp/  the standard protocols
 *
 * No route touches the bus, a store or a conversation's decisions. Every route has a row in rest/routes.ts.
 */
export { consoleMissing, hasConsole } from './console-folder.ts';
export { type Gateway, startGateway } from './gateway.ts';
export type { Token } from './guard/access.ts';
export type { Arrival, GatewayOptions, GatewayPort, Measurement, Measurements } from './port.ts';
