import { cut, messageOf, ParleyError } from '../../../../kernel/index.ts';
import type { Host } from '../host.ts';

/** A nats-server on this machine. */
export interface LocatedServer {
  readonly path: string;
  /** Without the `v`: `2.10.27`. */
  readonly version: string;
}

/** The oldest supported server (Debian 12). */
const OLDEST_VERSION = '2.9.10';
/** The first version with `sync_interval: always`; an older one exits on the unknown key. */
const SYNC_ALWAYS_VERSION = '2.10.0';

export function knowsSyncAlways(version: string): boolean {
  return isAtLeast(version, SYNC_ALWAYS_VERSION);
}

/** Compares the numbers only: `2.10.0-RC.1` counts as `2.10.0`. */
export function isAtLeast(version: string, least: string): boolean {
  const [mine, theirs] = [numbersOf(version), numbersOf(least)];
  for (const [at, number] of theirs.entries()) {
    const difference = (mine[at] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

function numbersOf(version: string): number[] {
  return (/\d+(\.\d+)*/.exec(version)?.[0] ?? '0').split('.').map(Number);
}

/** The version in `nats-server: v2.9.10`; null for any other text. */
export function parseVersion(output: string): string | null {
  return /nats-server\D*?v?(\d+\.\d+\.\d+\S*)/i.exec(output)?.[1] ?? null;
}

const VERSION_TIMEOUT_MS = 10_000;

/** Runs the binary once. Throws `NATS_SERVER_UNUSABLE` when it is not a nats-server, or too old. */
export async function inspectBinary(path: string, host: Host): Promise<LocatedServer> {
  const result = await host.run(path, ['--version'], VERSION_TIMEOUT_MS).catch((error: unknown) => ({
    kind: 'failed' as const,
    reason: messageOf(error),
  }));
  if (result.kind === 'failed') throw unusable(path, `cannot be run: ${result.reason}`);
  const version = parseVersion(result.output);
  if (result.code !== 0 || version === null)
    throw unusable(
      path,
      `is not a nats-server: \`--version\` says ${JSON.stringify(cut(result.output, 200))}`,
    );
  if (!isAtLeast(version, OLDEST_VERSION))
    throw unusable(path, `is version ${version}, which is too old: ${OLDEST_VERSION} or newer is required`);
  return { path, version };
}

function unusable(path: string, what: string): ParleyError {
  return new ParleyError('NATS_SERVER_UNUSABLE', `${path} ${what}`, {
    hint: `set NATS_BIN to a nats-server of version ${OLDEST_VERSION} or newer, or unset NATS_BIN so that parley searches for one`,
  });
}
