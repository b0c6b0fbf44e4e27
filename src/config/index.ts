/**
 * Loads and checks the configuration: flags, then environment, then `parley.yaml`, then defaults.
 *
 *   schema/      what may be written and what results: schema, model-file, parameters (of requests), http-file, tools-file
 *                (shapes with defaults), config (the loaded result), setting-sources, settings and nats-server (one machine),
 *                profiles (differences between providers), schema-keys, secret
 *   files/       reads files: read-file, yaml-file (positions), config-file (`parley.yaml`), front-matter (of agents),
 *                substitution (`${NAME}`), dotenv (`.env`), check (schema to problems)
 *   resolve/     builds the result: load (all of it), agents, models, parameters, tools, workflows, prompts, nats-users;
 *                on-demand loads these when first used
 *   problems/    what is wrong, for a person: problems, key-paths, environment
 *
 * Reads no `process.env`: callers pass the environment. Other folders import this index only.
 */
export { splitFrontMatter } from './files/front-matter.ts';
export { type Environment, variable } from './problems/environment.ts';
export { didYouMean, Problems, show } from './problems/problems.ts';
export type { LoadOptions } from './resolve/load.ts';
export { OPENAI_URL } from './resolve/models.ts';
export type { NatsUser, NatsUsers } from './resolve/nats-users.ts';
export { editorSchemas, loadConfig, loadNatsUsers } from './resolve/on-demand.ts';
export { SHIPPED_CONFIG } from './resolve/prompts.ts';
export { BUILT_IN_TOOLS, passedOn } from './resolve/tools.ts';
export type {
  AgentConfig,
  AgentParameters,
  Config,
  McpServerConfig,
  ModelConfig,
  PolicyRule,
  RequestParameters,
  RetentionConfig,
  TracesConfig,
} from './schema/config.ts';
export type { PublisherConfig, PublishersConfig } from './schema/http-file.ts';
export { type NatsServer, revealed } from './schema/nats-server.ts';
export { FIELD_OF_PARAMETER } from './schema/parameters.ts';
export { Secret, secretValuesOf, settingDigest } from './schema/secret.ts';
export { type ConfigFlags, flagOf, SETTINGS } from './schema/setting-sources.ts';
export {
  FAULT_VARIABLES,
  type HttpToken,
  namesServer,
  resolveDaemonAddress,
  SETTING_VARIABLES,
  withoutCredentials,
} from './schema/settings.ts';
