import { delimiter, join } from 'node:path';
import { messageOf, ParleyError } from '../../../../kernel/index.ts';
import type { ManagedLog } from '../host.ts';
import { type Host, systemHost } from '../host.ts';
import { installNatsServer } from '../install/install.ts';
import { inspectBinary, type LocatedServer } from '../install/version.ts';

/**
 * Finds the nats-server to run, and installs one when there is none.
 *
 * LOCATE-1 The file in NATS_BIN is used or refused, never replaced by another.
 * LOCATE-2 A file that cannot be run or is too old is skipped and logged.
 */

export interface LocateOptions {
  /** NATS_BIN and PATH are read. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: ManagedLog;
  readonly host?: Host;
  /** Tells a person about an installation; default: a line on stderr. */
  readonly announce?: (line: string) => void;
  /** Whether a missing server is installed: true, also without a terminal; undefined, if a person agrees; false, never. */
  readonly mayInstall?: boolean | undefined;
}

/** Folders that are often missing in PATH: Debian's for a normal user, brew's for a service. */
const USUAL_FOLDERS = [
  '/usr/sbin',
  '/usr/local/bin',
  '/usr/local/sbin',
  '/usr/bin',
  '/opt/homebrew/bin',
  '/home/linuxbrew/.linuxbrew/bin',
];

/** Throws `NATS_SERVER_UNUSABLE` (for NATS_BIN) or `NATS_SERVER_MISSING` (with the command to type). */
export async function locateNatsServer(options: LocateOptions): Promise<LocatedServer> {
  const host = options.host ?? systemHost();
  if (options.env.NATS_BIN) return inspectBinary(options.env.NATS_BIN, host);
  const found = await search(options, host);
  if (found) return found;
  const announce = options.announce ?? ((line: string) => void process.stderr.write(`parley: ${line}\n`));
  const say = (line: string): void => {
    options.log('info', line);
    announce(line);
  };
  const outcome = await installNatsServer(host, say, options.mayInstall);
  if (outcome.kind === 'impossible') throw missing(outcome.why, outcome.instruction);
  const installed = await search(options, host);
  if (installed) return installed;
  throw missing(
    'the package was installed, but none of the usual folders has a usable nats-server',
    'set NATS_BIN to the binary',
  );
}

/** For the test command, which needs a server first: a missing one is installed unattended. */
export async function ensureNatsServer(
  env: LocateOptions['env'],
  log: ManagedLog = () => undefined,
): Promise<LocatedServer> {
  return locateNatsServer({ env, log, mayInstall: true });
}

async function search(options: LocateOptions, host: Host): Promise<LocatedServer | null> {
  const onPath = (options.env.PATH ?? '').split(delimiter).filter((folder) => folder.startsWith('/'));
  for (const folder of new Set([...onPath, ...USUAL_FOLDERS])) {
    const path = join(folder, 'nats-server');
    if (!(await host.isExecutable(path))) continue;
    try {
      return await inspectBinary(path, host);
    } catch (error) {
      options.log('warn', `skipped: ${messageOf(error)}`);
    }
  }
  return null;
}

function missing(why: string, instruction: string): ParleyError {
  return new ParleyError('NATS_SERVER_MISSING', `parley needs a nats-server: ${why}`, { hint: instruction });
}
