import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Check } from './check.ts';

const PLACES = ['/usr/sbin', '/usr/local/bin', '/usr/local/sbin', '/opt/homebrew/bin'];
const OLDEST = [2, 9, 10] as const;

/** Only looks: `up` is what installs a missing server. Not needed where the daemon joins another one. */
export async function natsServerCheck(
  env: Readonly<Record<string, string | undefined>>,
  joins: 'managed' | 'url',
): Promise<Check> {
  const name = 'nats-server';
  if (joins === 'url') return { name, status: 'ok', message: 'not needed: the daemon joins a server by URL' };
  const version = await findVersion(env);
  if (version === null) {
    return {
      name,
      status: 'fail',
      message: 'not found',
      fix: 'sudo apt-get install nats-server, or brew install nats-server, or the official release at https://github.com/nats-io/nats-server/releases; or set NATS_BIN to its path',
    };
  }
  if (isOlder(version, OLDEST)) {
    const message = `${version} is too old: Parley needs ${OLDEST.join('.')} or newer`;
    return { name, status: 'fail', message, fix: 'install a newer nats-server, or set NATS_BIN to its path' };
  }
  if (isOlder(version, [2, 10, 0])) {
    const message = `${version} syncs to the disk about once a second`;
    return { name, status: 'warn', message, fix: 'from 2.10 on, what was accepted is on the disk at once' };
  }
  return { name, status: 'ok', message: version };
}

async function findVersion(env: Readonly<Record<string, string | undefined>>): Promise<string | null> {
  const candidates = env.NATS_BIN
    ? [env.NATS_BIN]
    : ['nats-server', ...PLACES.map((place) => `${place}/nats-server`)];
  for (const candidate of candidates) {
    try {
      const { stdout } = await promisify(execFile)(candidate, ['--version'], {
        env: { PATH: env.PATH ?? '' },
        timeout: 5_000,
      });
      const found = /v?(\d+\.\d+\.\d+)/.exec(stdout);
      if (found?.[1]) return found[1];
    } catch {
      // not there, or not a nats-server: the next place
    }
  }
  return null;
}

function isOlder(version: string, than: readonly [number, number, number]): boolean {
  const parts = version.split('.').map(Number);
  for (const [place, wanted] of than.entries()) {
    const part = parts[place] ?? 0;
    if (part !== wanted) return part < wanted;
  }
  return false;
}
