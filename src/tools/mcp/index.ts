/**
 * Tools of MCP servers.
 *
 * toolbox.ts    builds the toolbox from the configuration (settings.ts) and has the tools of all servers;
 *               names.ts: their wire names; arguments.ts: schema checks
 * server.ts     keeps one server running; connection.ts: one connection to it
 * acceptance.ts which tools a person has accepted
 * render-result.ts   results as text; failure.ts: failures, without secrets
 * child-transport.ts, http-transport.ts   a child process and streamable HTTP, with the limits that the SDK lacks
 *
 * Only this folder imports the MCP client SDK. A call is never sent twice.
 */
export type { AcceptedTools } from './acceptance.ts';
export type { McpServerSettings, McpTimes } from './settings.ts';
export type { McpToolbox } from './toolbox.ts';
export { createMcpTools } from './toolbox.ts';
