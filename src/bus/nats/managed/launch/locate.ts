import { delimiter, join } from 'node:path';
import { messageOf, ParleyError } from '../../../../kernel/index.ts';
import { type Host, systemHost } from '../host.ts';
import { installNatsServer } from '../install/install.ts';
import { inspectBinary, type LocatedServer } from '../install/version.ts';
import type { ManagedLog } from '../log.ts';

/**
 * Finds the nats-server to run, and brings one when there is none.
 *
 * LOCATE-1 What a person names (NATS_BIN) is taken or refused, never replaced by another.
 * LOCATE-2 A file that cannot be run or is too old is passed over, and said.
 */

export interface LocateOptions {
  /** NATS_BIN and PATH are looked at. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: ManagedLog;
  readonly host?: Host;
  /** Where a person sees that something is being installed; default: a line on stderr. */
  readonly announce?: (line: string) => void;
  /** False: a server that is missing is not installed. */
  readonly mayInstall?: boolean | undefined;
}

/** Places that a PATH often lacks: Debian's is not in a plain user's, brew's not in a service's. */
const USUAL_FOLDERS = [
  '/usr/sbin',
  '/usr/local/bin',
  '/usr/local/sbin',
  '/usr/bin',
  '/opt/homebrew/bin',
  '/home/linuxbrew/.linuxbrew/bin',
];

/** Throws `NATS_SERVER_UNUSABLE` (what NATS_BIN names) or `NATS_SERVER_MISSING` (with the command to type). */
export async function locateNatsServer(options: LocateOptions): Promise<LocatedServer> {
  const host = options.host ?? systemHost();
  if (options.env.NATS_BIN) return inspectBinary(options.env.NATS_BIN, host); // LOCATE-1
  const found = await search(options, host);
  if (found) return found;
  const announce = options.announce ?? ((line: string) => void process.stderr.write(`parley: ${line}\n`));
  const say = (line: string): void => {
    options.log('info', line);
    announce(line);
  };
  const outcome = await installNatsServer(host, say, options.mayInstall ?? true);
  if (outcome.kind === 'impossible') throw missing(outcome.why, outcome.instruction);
  const installed = await search(options, host);
  if (installed) return installed;
  throw missing(
    'the package was installed, yet no usable nats-server is in any of the usual places',
    'name the binary in NATS_BIN',
  );
}

/** For a script that needs a server before anything else runs, such as the test command. */
export async function ensureNatsServer(
  env: LocateOptions['env'],
  log: ManagedLog = () => undefined,
): Promise<LocatedServer> {
  return locateNatsServer({ env, log });
}

async function search(options: LocateOptions, host: Host): Promise<LocatedServer | null> {
  const onPath = (options.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
  for (const folder of new Set([...onPath, ...USUAL_FOLDERS])) {
    const path = join(folder, 'nats-server');
    if (!(await host.isExecutable(path))) continue;
    try {
      return await inspectBinary(path, host);
    } catch (error) {
      options.log('warn', `passed over: ${messageOf(error)}`); // LOCATE-2
    }
  }
  return null;
}

function missing(why: string, instruction: string): ParleyError {
  return new ParleyError('NATS_SERVER_MISSING', `parley needs a nats-server: ${why}`, { hint: instruction });
}
