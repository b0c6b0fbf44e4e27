import { resolveDaemonAddress } from '../config/index.ts';
import type { Context } from './context.ts';
import { configFlags } from './options.ts';

/** Where the files are, for commands that need no daemon: `--data`, else PARLEY_DATA, else `data` here. */
export function dataDirectoryOf({ io, options }: Context): string {
  const flags = configFlags(options);
  return resolveDaemonAddress({ env: io.env, flags, workingDirectory: io.workingDirectory }).data;
}
