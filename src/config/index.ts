export type { Environment } from './problems/environment.ts';
export { nearest } from './problems/problems.ts';
export type { LoadOptions } from './resolve/load.ts';
export type { NatsUser, NatsUsers } from './resolve/nats-users.ts';
export { configJsonSchema, loadConfig, loadNatsUsers } from './resolve/on-demand.ts';
export { SHIPPED_CONFIG } from './resolve/prompts.ts';
export { BUILT_IN_TOOLS, passedOn } from './resolve/tools.ts';
export type {
  AgentConfig,
  Config,
  McpServerConfig,
  ModelConfig,
  OpenaiModelConfig,
  PolicyRule,
  PriceConfig,
  PromptTexts,
  RetentionConfig,
  ScriptedModelConfig,
  SessionSetting,
  ToolsConfig,
} from './schema/config.ts';
export { type ArmedPoints, CRASH_POINTS, type CrashPoint } from './schema/crash-points.ts';
export type { PublisherConfig, PublishersConfig } from './schema/http-file.ts';
export { type NatsCredentials, type NatsServer, revealed } from './schema/nats-server.ts';
export type { ConfigFlags } from './schema/said.ts';
export type { ContextConfig, LimitsConfig, RemoteAgentsConfig, RetryConfig } from './schema/schema.ts';
export { Secret } from './schema/secret.ts';
export {
  type DaemonAddress,
  type DaemonSettings,
  type HttpSetting,
  type HttpToken,
  type NatsSetting,
  resolveDaemonAddress,
  SETTING_VARIABLES,
} from './schema/settings.ts';
