import type { Config } from '../../config/index.ts';
import type { Context } from '../context.ts';
import type { Check } from './check.ts';

/** Whether programs that tools start can read the daemon's data; nothing where they cannot. */
export async function enclosureChecks({ rooms }: Context, config: Config): Promise<Check[]> {
  const fault = await (await rooms.daemon()).enclosureFault(config);
  if (fault === null) return [];
  return [
    {
      name: 'programs of tools',
      status: 'warn',
      message: `they can read the data directory and operate this daemon: ${fault}`,
      fix: 'allow user namespaces, or give the daemon a user of its own: docs/security.md, "Tools and the daemon"',
    },
  ];
}
