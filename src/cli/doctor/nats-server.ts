import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { splitUrls } from '../../kernel/index.ts';
import type { Context } from '../context.ts';
import type { Servers } from '../find-daemon.ts';
import { failureOf } from '../render/failure.ts';
import type { Check } from './check.ts';

const PLACES = ['/usr/sbin', '/usr/local/bin', '/usr/local/sbin', '/opt/homebrew/bin'];
const OLDEST = [2, 9, 10] as const;

/** Checks only; `up` installs a missing server. Not needed if the daemon uses an external server. */
export async function natsServerCheck(
  env: Readonly<Record<string, string | undefined>>,
  joins: 'managed' | 'url',
): Promise<Check> {
  const name = 'nats-server';
  if (joins === 'url') return { name, status: 'ok', message: 'not needed: the daemon uses a server by URL' };
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
    const message = `${version} syncs to disk about once a second`;
    return {
      name,
      status: 'warn',
      message,
      fix: 'install 2.10 or newer, which syncs each accepted message at once',
    };
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
      // missing, or not a nats-server: try the next path
    }
  }
  return null;
}

function isOlder(version: string, than: readonly [number, number, number]): boolean {
  const parts = version.split('.').map(Number);
  for (const [at, wanted] of than.entries()) {
    const part = parts[at] ?? 0;
    if (part !== wanted) return part < wanted;
  }
  return false;
}

/** Checks each external server. An unusable one is a failure only if no other is usable. */
export async function natsServersChecks(context: Context, { shown, options }: Servers): Promise<Check[]> {
  const urls = splitUrls(options.url);
  const { checkJetStream } = await context.dependencies.daemon();
  const checks = await Promise.all(
    splitUrls(shown).map(async (url, place): Promise<Check> => {
      const name = `server ${url}`;
      try {
        const untold = await checkJetStream({ ...options, url: urls[place] ?? url, name: 'parley-doctor' });
        const message =
          untold === null ? 'reachable' : `reachable; this user may not check JetStream: ${untold}`;
        return { name, status: 'ok', message };
      } catch (error) {
        const { message, hint } = failureOf(error);
        return { name, status: 'fail', message, ...(hint === undefined ? {} : { fix: hint }) };
      }
    }),
  );
  const isReachable = checks.some(({ status }) => status === 'ok');
  return checks.map((check) =>
    check.status === 'fail' && isReachable ? { ...check, status: 'warn' } : check,
  );
}
