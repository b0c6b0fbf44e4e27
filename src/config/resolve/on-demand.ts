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

/** The JSON Schema of `parley.yaml`, also stored as `config/parley.schema.json`. */
export async function configJsonSchema(): Promise<Record<string, unknown>> {
  return (await import('../schema/schema-keys.ts')).configJsonSchema();
}

export async function loadNatsUsers(file: string): Promise<NatsUsers> {
  return (await import('./nats-users.ts')).loadNatsUsers(file);
}
