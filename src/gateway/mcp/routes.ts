import type { Application, RouteContext } from '../context.ts';
import { jsonBody } from '../guard/body.ts';

/**
 * `/mcp`: agents of other programs take part, over MCP's streamable HTTP.
 *
 * MCP-ROUTES-1  No sessions: each request is complete, and its answer may be a stream. A restart loses no client, and
 *               nothing is stored for a client that does not return.
 * MCP-ROUTES-2  A client that disconnects ends only its own wait.
 */
export function addMcpRoutes(app: Application, routes: RouteContext): void {
  app.post('/mcp', async (context) => {
    const { identity } = context.var;
    const parsedBody = await jsonBody(context);
    const { createMcpServer, createMcpHandler } = await import('./server.ts'); // loads MCP's SDK
    const ofRequest = { ...routes, daemon: () => routes.daemon(context) };
    const handler = createMcpHandler(() => createMcpServer(ofRequest, identity), {
      keepAliveMs: routes.heartbeatMs,
    });
    return handler.fetch(context.req.raw, { parsedBody });
  });
}
