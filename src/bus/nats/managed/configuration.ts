import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isAtLeast } from '../../../kernel/index.ts';
import type { Credentials, Endpoint, ServerFiles } from './directory.ts';

/**
 * The configuration of the managed server.
 *
 * CONFIGURATION-1 It listens on loopback only and has one user with an nkey, so the configuration contains no secret.
 * CONFIGURATION-2 It has no key that the server's version does not know: the server would exit.
 * CONFIGURATION-3 `max_file` is never lower than what the streams contain and `PARLEY_DEAD` reserves: with less, nats-server 2.9.10
 *    does not load those streams, and reports that only in its log.
 */

export interface ConfigurationInput {
  readonly files: ServerFiles;
  readonly endpoint: Endpoint;
  readonly credentials: Credentials;
  readonly version: string;
  /** Bytes. */
  readonly maxFile: number;
}

/** The only address of the managed server. */
export const LOOPBACK = '127.0.0.1';

const MEBIBYTE = 1024 * 1024;
const MAX_MEMORY = 256 * MEBIBYTE;
const LOG_SIZE_LIMIT = 10 * MEBIBYTE;

/** Since 2.10 a server can sync each message (`sync_interval: always`). */
export function canSyncAlways(version: string): boolean {
  return isAtLeast(version, [2, 10]);
}

export function renderConfiguration(input: ConfigurationInput): string {
  const { files, endpoint, credentials } = input;
  const lines = [
    '# Written by parley at every start of the server. Changes in this file are lost.',
    `server_name: ${quote(endpoint.name)}`,
    `host: ${quote(LOOPBACK)}`,
    `port: ${endpoint.port}`,
    `authorization { users: [{ nkey: ${quote(credentials.user)} }] }`,
    `max_payload: ${MEBIBYTE}`,
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
    ...(canSyncAlways(input.version) ? ['  sync_interval: always'] : []),
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
/** Room for the streams of the daemon on a disk that is nearly full. */
const LEAST_MAX_FILE = 512 * MEBIBYTE;

/** The limit of all streams together, in bytes. `free`: the free bytes of the disk. */
export function sizeMaxFile(free: number, used: number): number {
  return Math.floor(Math.max((free + used) * SHARE_OF_DISK, used + LEAST_MAX_FILE));
}

/** Bytes of the files below this directory. */
export async function bytesBelow(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(directory, { recursive: true }).catch(() => [])) {
    const facts = await stat(join(directory, name)).catch(() => null);
    if (facts?.isFile()) bytes += facts.size;
  }
  return bytes;
}
