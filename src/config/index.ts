/**
 * Loads and checks the configuration: flags, then environment, then `parley.yaml`, then defaults.
 *
 *   schema/      what may be written and what results: schema, model-file, parameters (of requests), http-file, tools-file
 *                (shapes with defaults), config (the loaded result), setting-sources, settings (one machine),
 *                profiles (differences between providers), schema-keys, secret
 *   files/       reads files: read-file (front matter too), yaml-file (positions, `${NAME}`), config-file (`parley.yaml`),
 *                dotenv (`.env`), check (schema to problems)
 *   resolve/     builds the result: load (all of it), agents, models, tools, workflows, nats-users. They are loaded when first used:
 *                most commands only talk to a daemon, and loading the YAML parser takes longer than the command itself
 *   problems.ts  what is wrong, for a person, and paths of keys
 *
 * Reads no `process.env`: callers pass the environment. Other folders import this index only.
 */
import type { LoadOptions } from './resolve/load.ts';
import type { NatsUsers } from './resolve/nats-users.ts';
import type { Config } from './schema/config.ts';

export { splitFrontMatter } from './files/read-file.ts';
export { didYouMean, Problems, show } from './problems.ts';
export type { LoadOptions } from './resolve/load.ts';
export type { NatsUser, NatsUsers } from './resolve/nats-users.ts';
export { BUILT_IN_TOOLS, passedOn } from './resolve/tools.ts';
export {
  type AcpConfig,
  type AgentConfig,
  type AgentParameters,
  type Config,
  type McpServerConfig,
  type ModelConfig,
  type RequestParameters,
  type RetentionConfig,
  workFolder,
} from './schema/config.ts';
export type { PublisherConfig, PublishersConfig } from './schema/http-file.ts';
export { Secret, secretValuesOf, settingDigest } from './schema/secret.ts';
export { type ConfigFlags, type Environment, flagOf, SETTINGS, variable } from './schema/setting-sources.ts';
export {
  CRASH_POINTS_VARIABLE,
  type HttpToken,
  type NatsServer,
  namesServer,
  resolveDaemonAddress,
  revealed,
  SETTING_VARIABLES,
  SHIPPED_CONFIG,
  withoutCredentials,
} from './schema/settings.ts';

export async function loadConfig(options: LoadOptions): Promise<Config> {
  return (await import('./resolve/load.ts')).loadConfig(options);
}

/** The JSON Schemas of the files of a configuration for editors, by the name of the file in `config/` that stores each. */
export async function editorSchemas(): Promise<Readonly<Record<string, Record<string, unknown>>>> {
  const [{ editorSchema }, { agentFileSchema, configFileSchema }, { completeWorkflowSchema }] =
    await Promise.all([
      import('./schema/schema-keys.ts'),
      import('./schema/schema.ts'),
      import('./resolve/workflows.ts'),
    ]);
  return {
    'parley.schema.json': editorSchema('parley.yaml', configFileSchema),
    'agent.schema.json': editorSchema('the front matter of agents/<slug>.md', agentFileSchema),
    'workflow.schema.json': editorSchema('workflows/<id>.yaml', completeWorkflowSchema),
  };
}

export async function loadNatsUsers(file: string): Promise<NatsUsers> {
  return (await import('./resolve/nats-users.ts')).loadNatsUsers(file);
}
