import type { CommandResult, Host } from './host.ts';

/**
 * Brings a missing nats-server through the system's package manager.
 *
 * I1 Only when it needs no password: as root, or where `sudo -n true` succeeds. Nothing ever asks.
 * I2 It is said before it is done.
 * I3 When it cannot be done there is one command for this system, for a person to type.
 */

export type InstallOutcome =
  | { readonly kind: 'installed' }
  /** `why` stands after a colon; `instruction` is the whole next step (I3). */
  | { readonly kind: 'impossible'; readonly why: string; readonly instruction: string };

const APT_GET = '/usr/bin/apt-get';
const INSTALL = ['install', '-y', '--no-install-recommends', 'nats-server'];
/** Another apt on this machine is waited for, rather than failed on. */
const WAIT_FOR_LOCK = ['-o', 'DPkg::Lock::Timeout=120'];
const UPDATE_TIMEOUT_MS = 180_000;
const INSTALL_TIMEOUT_MS = 420_000;
const SUDO_TIMEOUT_MS = 10_000;

export async function installNatsServer(host: Host, say: (line: string) => void): Promise<InstallOutcome> {
  if (host.platform === 'darwin') return impossible('none is installed', 'run: brew install nats-server');
  if (host.platform !== 'linux' || !(await host.isExecutable(APT_GET)))
    return impossible(
      'this system has no package of it that is known here',
      'download the official release from https://github.com/nats-io/nats-server/releases and put ' +
        '`nats-server` on your PATH, or name it in NATS_BIN',
    );
  const privileges = await passwordless(host);
  if (!privileges) return impossible('installing it needs a password', `run: ${typedCommand('sudo ')}`); // I1
  return installWithApt(host, privileges, say);
}

/** What to put before a command to run it as root without a password; null when there is no such way. */
async function passwordless(host: Host): Promise<readonly string[] | null> {
  if (host.userId === 0) return [];
  const answer = await host.run('sudo', ['-n', 'true'], SUDO_TIMEOUT_MS);
  return succeeded(answer) ? ['sudo', '-n'] : null;
}

async function installWithApt(
  host: Host,
  privileges: readonly string[],
  say: (line: string) => void,
): Promise<InstallOutcome> {
  const apt = (args: readonly string[], timeoutMs: number): Promise<CommandResult> => {
    const words = [
      ...privileges,
      'env',
      'DEBIAN_FRONTEND=noninteractive',
      APT_GET,
      ...WAIT_FOR_LOCK,
      ...args,
    ];
    return host.run(words[0] ?? 'env', words.slice(1), timeoutMs);
  };
  say('no nats-server found: installing it with apt-get (about 10 MB)'); // I2
  const updated = await apt(['update'], UPDATE_TIMEOUT_MS);
  // One broken source must not be in the way: what the lists do hold decides.
  if (!succeeded(updated)) say(`apt-get update failed, trying to install all the same: ${reasonOf(updated)}`);
  const installed = await apt(INSTALL, INSTALL_TIMEOUT_MS);
  if (!succeeded(installed)) {
    return impossible(
      `apt-get could not install it: ${reasonOf(installed)}`,
      `run: ${typedCommand(host.userId === 0 ? '' : 'sudo ')}`,
    );
  }
  say(
    'nats-server is installed (if the package also started a service of its own, parley does not use that one)',
  );
  return { kind: 'installed' };
}

function typedCommand(prefix: string): string {
  return `${prefix}apt-get update && ${prefix}apt-get ${INSTALL.join(' ')}`;
}

function impossible(why: string, instruction: string): InstallOutcome {
  return { kind: 'impossible', why, instruction };
}

function succeeded(result: CommandResult): boolean {
  return result.kind === 'exited' && result.code === 0;
}

/** The last lines a command said: with apt, those that name the reason. */
function reasonOf(result: CommandResult): string {
  if (result.kind === 'failed') return result.reason;
  return result.output.split('\n').slice(-3).join(' | ') || `exit code ${result.code}`;
}
