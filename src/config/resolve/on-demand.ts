import type { Config } from '../schema/config.ts';
import type { LoadOptions } from './load.ts';
import type { NatsUsers } from './nats-users.ts';

/**
 * Loads the modules that read the configuration at first use: most commands only talk to a daemon, and loading the YAML parser
 * takes longer than the command itself.
 */

export async function loadConfig(options: LoadOptions): Promise<Config> {
  return (await import('./load.ts')).loadConfig(options);
}

/** The JSON Schemas of the files of a configuration for editors, by the name of the file in `config/` that stores each. */
export async function editorSchemas(): Promise<Readonly<Record<string, Record<string, unknown>>>> {
  const [{ editorSchema }, { agentFileSchema, configFileSchema }, { completeWorkflowSchema }] =
    await Promise.all([
      import('../schema/schema-keys.ts'),
      import('../schema/schema.ts'),
      import('./workflows.ts'),
    ]);
  return {
    'parley.schema.json': editorSchema('parley.yaml', configFileSchema),
    'agent.schema.json': editorSchema('the front matter of agents/<slug>.md', agentFileSchema),
    'workflow.schema.json': editorSchema('workflows/<id>.yaml', completeWorkflowSchema),
  };
}

export async function loadNatsUsers(file: string): Promise<NatsUsers> {
  return (await import('./nats-users.ts')).loadNatsUsers(file);
}
