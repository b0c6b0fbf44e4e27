import type { Config, ConfigFlags } from '../config/index.ts';
import type { Context } from './context.ts';
import { configFlags } from './options.ts';

/** The configuration as `up` would load it. `directory`: `--config`. */
export function loadConfig(
  { io, rooms, options }: Context,
  directory: string | undefined,
  further: ConfigFlags = {},
  allowCrashPoints = false,
): Promise<Config> {
  return rooms.loadConfig({
    configDirectory: directory,
    env: io.env,
    flags: { ...configFlags(options), ...further },
    workingDirectory: io.workingDirectory,
    allowCrashPoints,
  });
}
