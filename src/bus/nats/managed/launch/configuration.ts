import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Credentials, Endpoint, ServerFiles } from '../directory.ts';
import type { Host } from '../host.ts';
import { knowsSyncAlways } from '../install/version.ts';
import { LOOPBACK } from '../port.ts';

/**
 * The configuration of the managed server.
 *
 * CONFIGURATION-1 It listens on loopback only and has one user with an nkey, so the configuration contains no secret.
 * CONFIGURATION-2 It has no key that the server's version does not know: the server would exit.
 * CONFIGURATION-3 `max_file` is never lower than the sum that the streams reserve: with less, nats-server 2.9.10 does not load
 *    those streams, and reports that only in its log.
 */

export interface ConfigurationInput {
  readonly files: ServerFiles;
  readonly endpoint: Endpoint;
  readonly credentials: Credentials;
  readonly version: string;
  /** Bytes. */
  readonly maxPayload: number;
  /** Bytes. */
  readonly maxFile: number;
}

const MEBIBYTE = 1024 * 1024;
export const DEFAULT_MAX_PAYLOAD = MEBIBYTE;
const MAX_MEMORY = 256 * MEBIBYTE;
const LOG_SIZE_LIMIT = 10 * MEBIBYTE;

export function renderConfiguration(input: ConfigurationInput): string {
  const { files, endpoint, credentials } = input;
  const lines = [
    '# Written by parley at every start of the server. Changes in this file are lost.',
    `server_name: ${quote(endpoint.name)}`,
    `host: ${quote(LOOPBACK)}`,
    `port: ${endpoint.port}`,
    `authorization { users: [{ nkey: ${quote(credentials.user)} }] }`,
    `max_payload: ${input.maxPayload}`,
    // Disconnects a dead client after 10 s, one that reads too slowly after 5 s.
    'ping_interval: "5s"',
    'ping_max: 2',
    'write_deadline: "5s"',
    `pid_file: ${quote(files.pidFile)}`,
    `log_file: ${quote(files.log)}`,
    `logfile_size_limit: ${LOG_SIZE_LIMIT}`,
    'jetstream {',
    `  store_dir: ${quote(files.directory)}`,
    `  max_mem: ${MAX_MEMORY}`,
    `  max_file: ${input.maxFile}`,
    ...(knowsSyncAlways(input.version) ? ['  sync_interval: always'] : []),
    '}',
  ];
  return `${lines.join('\n')}\n`;
}

/** The server's escapes are a subset of JSON's, which is sufficient for paths. */
function quote(text: string): string {
  return JSON.stringify(text);
}

/** The server's share of a disk; the rest is for the logs and other programs. */
const SHARE_OF_DISK = 0.75;
/** With less, the server would refuse the daemon's streams. */
const LEAST_MAX_FILE = 512 * MEBIBYTE;

/** The limit of all streams together, in bytes. `free`: the free bytes of the disk. */
export function sizeMaxFile(free: number, used: number, reserved: number): number {
  return Math.floor(
    Math.max((free + used) * SHARE_OF_DISK, reserved + LEAST_MAX_FILE, used + LEAST_MAX_FILE),
  );
}

export async function maxFileFor(files: ServerFiles, host: Host): Promise<{ maxFile: number; free: number }> {
  const free = await host.freeBytes(files.directory);
  const stored = await measureStore(files.store);
  return { maxFile: sizeMaxFile(free, stored.used, stored.reserved), free };
}

/** The bytes on disk, and the sum that the streams reserve (`max_bytes` in `meta.inf`). */
export async function measureStore(store: string): Promise<{ used: number; reserved: number }> {
  let used = 0;
  let reserved = 0;
  const names = await readdir(store, { recursive: true }).catch(() => []);
  for (const name of names) {
    const path = join(store, name);
    const facts = await stat(path).catch(() => null);
    if (!facts?.isFile()) continue;
    used += facts.size;
    if (/[/\\]streams[/\\][^/\\]+[/\\]meta\.inf$/.test(path)) reserved += await reservedBy(path);
  }
  return { used, reserved };
}

async function reservedBy(path: string): Promise<number> {
  try {
    const { max_bytes: maxBytes } = JSON.parse(await readFile(path, 'utf8')) as { max_bytes?: unknown };
    return typeof maxBytes === 'number' && maxBytes > 0 ? maxBytes : 0;
  } catch {
    return 0; // incomplete: the server cannot recover that stream either
  }
}
