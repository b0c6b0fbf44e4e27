import type { Config, ConfigFlags } from '../config/index.ts';
import type { Context } from './context.ts';
import { configFlags } from './options/options.ts';

/** Loads the configuration as `up` does. `directory`: the value of `--config`. */
export function loadConfig(
  { io, dependencies, options }: Context,
  directory: string | undefined,
  further: ConfigFlags = {},
): Promise<Config> {
  return dependencies.loadConfig({
    configDirectory: directory,
    env: io.env,
    flags: { ...configFlags(options), ...further },
    workingDirectory: io.workingDirectory,
  });
}
