export type { AcceptedTools } from './acceptance.ts';
export { createMcpTools, type McpToolsOptions } from './create.ts';
export type { ServerStatus } from './server.ts';
export type { McpLog, McpServerSettings, McpTimes, SecretValue } from './settings.ts';
export type { McpToolbox } from './toolbox.ts';
