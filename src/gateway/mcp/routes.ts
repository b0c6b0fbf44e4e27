import type { Application, Request, RouteContext } from '../context.ts';
import { jsonBody } from '../rest/handlers.ts';
import type { ServerOptions } from './server.ts';

/**
 * `/mcp`: agents of other programs take part, over MCP's streamable HTTP.
 *
 * MCP-ROUTES-1  No sessions: each request is complete, and its answer may be a stream. A restart loses no client, and
 *               nothing is stored for a client that does not return.
 * MCP-ROUTES-2  A client that disconnects ends only its own wait.
 */
export function addMcpRoutes(
  app: Application,
  routes: RouteContext,
  options: Pick<ServerOptions, 'heartbeatMs' | 'onFault'>,
): void {
  app.post('/mcp', async (context) => {
    const { identity } = context.var;
    const parsedBody = await jsonBody(context, routes);
    const { createMcpServer, WebStandardStreamableHTTPServerTransport } = await import('./server.ts'); // loads MCP's SDK
    const transport = new WebStandardStreamableHTTPServerTransport({ keepAliveMs: options.heartbeatMs });
    const ofRequest = { ...routes, daemon: () => routes.daemon(context) };
    await createMcpServer({ ...options, routes: ofRequest, identity }).connect(transport);
    onGone(context, () => void transport.close());
    return transport.handleRequest(context.req.raw, { parsedBody });
  });
}

function onGone(context: Request, then: () => void): void {
  const { signal } = context.req.raw;
  if (signal.aborted) then();
  else signal.addEventListener('abort', then, { once: true });
}
