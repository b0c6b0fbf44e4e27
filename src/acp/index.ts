/**
 * The Agent Client Protocol (ACP), version 1: JSON-RPC over stdio.
 *
 * agents/    coding agents as participants: a handler of offered turns that drives the process of an agent
 * blocks.ts  messages and files as content blocks, and blocks as messages and files
 * editors/   Parley as the agent of an editor. server.ts: sessions, which are conversations of a running daemon;
 *            prompt.ts: one prompt, followed to its end, with its approvals; updates.ts: entries and steps
 *            of a progress as updates
 */
export { CodingAgent } from './agents/coding-agent.ts';
export { diagnose } from './agents/connection.ts';
export type { AcpAnswer, AcpProgress, OfferedTurn, ToolRequest } from './agents/turn.ts';
export { promptFor } from './agents/turn.ts';
export { serveAcp } from './editors/server.ts';
