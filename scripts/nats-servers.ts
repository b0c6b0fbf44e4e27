import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

/** The nats-servers that tests can run on, by version. */

export interface FoundServer {
  readonly version: string;
  readonly path: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Filled by `scripts/fetch-nats-servers`: `<version>/nats-server`. */
export function serversFolder(env: Environment): string {
  return join(env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache'), 'parley', 'nats-server');
}

/**
 * Those in `NATS_BINS` (paths with `:` between); where that is not set, those in the folder, and the one of `NATS_BIN` or the
 * PATH. Oldest first, each version once. What cannot be run is left out, but not where it was named.
 */
export async function findServers(env: Environment): Promise<FoundServer[]> {
  const named = env.NATS_BINS?.split(delimiter).filter((path) => path !== '');
  const folder = serversFolder(env);
  const fetched = await readdir(folder).catch(() => []);
  const paths = named ?? [
    env.NATS_BIN || 'nats-server',
    ...['/usr/sbin', '/usr/local/sbin'].map((place) => join(place, 'nats-server')),
    ...fetched.map((version) => join(folder, version, 'nats-server')),
  ];
  const found = new Map<string, FoundServer>();
  for (const path of paths) {
    const version = await versionOf(path, env);
    if (version === null && named)
      throw new Error(`NATS_BINS names ${path}, which is no nats-server that runs`);
    if (version !== null && !found.has(version)) found.set(version, { version, path });
  }
  return [...found.values()].sort((a, b) => compare(a.version, b.version));
}

async function versionOf(path: string, env: Environment): Promise<string | null> {
  try {
    const { stdout } = await promisify(execFile)(path, ['--version'], { env: { PATH: env.PATH ?? '' } });
    return /nats-server: v?(\d+\.\d+\.\d+)/.exec(stdout)?.[1] ?? null;
  } catch {
    return null;
  }
}

function compare(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
