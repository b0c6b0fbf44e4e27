/**
 * Tools of MCP servers.
 *
 * toolbox.ts    the tools of all servers: their wire names, and which of them a person has accepted
 * server.ts     keeps one server running, and checks the arguments of its tools; connection.ts: its settings, and one connection to it
 * render-result.ts   results as text; failure.ts: failures, without secrets
 * oauth/   logins of people: log-in.ts makes one, logins.ts keeps them encrypted, authorization.ts uses and renews them,
 *          guarded-fetch.ts requests what a server names
 * child-transport.ts, http-transport.ts   a child process and streamable HTTP, with the limits that the SDK lacks
 *
 * Only this folder imports the MCP client SDK. A call is never sent twice.
 */

export { type ChildSettings, ChildTransport } from './child-transport.ts';
export type { McpServerSettings, McpTimes } from './connection.ts';
export { logIn, logOut } from './oauth/log-in.ts';
export { LoginStore } from './oauth/logins.ts';
export type { AcceptedTools, McpToolbox } from './toolbox.ts';
export { createMcpTools } from './toolbox.ts';
