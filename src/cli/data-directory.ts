import { ParleyError } from '../client/index.ts';
import { resolveDaemonAddress } from '../config/index.ts';
import type { Context } from './context.ts';
import { configFlags } from './options.ts';

/** Where the files are, for commands that need no daemon: `--data`, else PARLEY_DATA, else `data` here. */
export function dataDirectoryOf({ io, options }: Context): string {
  const ignored = Object.keys(options).filter((name) => /^(nats|prefix$)/.test(name));
  if (ignored[0] !== undefined) throw needsNoServer(ignored[0]);
  const flags = configFlags(options);
  return resolveDaemonAddress({ env: io.env, flags, workingDirectory: io.workingDirectory }).data;
}

function needsNoServer(option: string): ParleyError {
  const flag = `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return new ParleyError(
    'USAGE',
    `${flag} has no effect here: this command works on the files of a data directory`,
    {
      hint: 'name the directory with --data; `parley migrate` moves conversations between files and a nats-server',
    },
  );
}
