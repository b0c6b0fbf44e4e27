import type { Config } from '../schema/config.ts';
import type { LoadOptions } from './load.ts';
import type { NatsUsers } from './nats-users.ts';

/**
 * What reads configuration files, loaded when it is first asked for: most commands only talk to a daemon and read none, and
 * what parses YAML takes longer to load than they take to run.
 */

export async function loadConfig(options: LoadOptions): Promise<Config> {
  return (await import('./load.ts')).loadConfig(options);
}

/** The JSON Schema of `parley.yaml`; `config/parley.schema.json` is this. */
export async function configJsonSchema(): Promise<Record<string, unknown>> {
  return (await import('../schema/schema-keys.ts')).configJsonSchema();
}

export async function loadNatsUsers(file: string): Promise<NatsUsers> {
  return (await import('./nats-users.ts')).loadNatsUsers(file);
}
