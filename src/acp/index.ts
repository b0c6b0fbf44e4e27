/**
 * The Agent Client Protocol (ACP).
 *
 * agents/   coding agents as participants: a handler of offered turns that drives the process of an agent
 */
export { CodingAgent, type CodingAgentSettings } from './agents/coding-agent.ts';
