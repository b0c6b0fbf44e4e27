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
} from './config.ts';
export { type ArmedPoints, CRASH_POINTS, type CrashPoint } from './crash-points.ts';
export type { PublisherConfig } from './doors-file.ts';
export type { Environment } from './environment.ts';
export type { LoadOptions } from './load.ts';
export { type NatsCredentials, type NatsServer, revealed } from './nats-server.ts';
export type { NatsUser, NatsUsers } from './nats-users.ts';
export { nearest } from './nearest.ts';
export { configJsonSchema, loadConfig, loadNatsUsers } from './on-demand.ts';
export { passedOn } from './passed-on.ts';
export { SHIPPED_CONFIG } from './prompts.ts';
export type { PublishersConfig } from './publishers.ts';
export type { ConfigFlags } from './said.ts';
export type { ContextConfig, LimitsConfig, RemoteAgentsConfig, RetryConfig } from './schema.ts';
export { Secret } from './secret.ts';
export {
  type DaemonAddress,
  type DaemonSettings,
  type HttpSetting,
  type HttpToken,
  type NatsSetting,
  resolveDaemonAddress,
  SETTING_VARIABLES,
} from './settings.ts';
export { BUILT_IN_TOOLS } from './tools.ts';
