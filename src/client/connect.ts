import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { NatsOptions } from '../bus/nats/index.ts';
import {
  errnoOf,
  isRecord,
  messageOf,
  ParleyError,
  parseJson,
  replaceFile,
  splitUrls,
  urlWithoutSecrets,
} from '../kernel/index.ts';
import type { ClientOptions, ParleyClient } from './client.ts';

/** How a program reaches a daemon: by an address, or by the one that the daemon left in its data directory. */

/**
 * Loads the client library, and the NATS library with it, at the first connection: a command that needs none starts faster.
 *
 * Null is what `readConnectionFile` returns where no daemon left its address: refused with a hint.
 */
export async function connect(options: ClientOptions | null): Promise<ParleyClient> {
  if (options === null) {
    throw new ParleyError(
      'DAEMON_NOT_RUNNING',
      'connect: no daemon has left its address in that data directory',
      {
        hint: 'start one with `parley up`, or name its server: connect({ url: "nats://127.0.0.1:4222" })',
      },
    );
  }
  requireUrl(options);
  return (await import('./client.ts')).openClient(options, urlWithoutSecrets(options.url));
}

/** Programs without type checks call `connect` too. */
function requireUrl(options: Partial<ClientOptions> | undefined): void {
  const url: unknown = options?.url;
  const urls: readonly unknown[] = Array.isArray(url) ? url : [url];
  if (urls.length > 0 && urls.every((one) => typeof one === 'string' && one.trim() !== '')) return;
  throw new ParleyError('CONFIG_INVALID', `connect: url is ${JSON.stringify(url) ?? 'missing'}`, {
    hint: 'name the NATS server, or a list of them: connect({ url: "nats://127.0.0.1:4222" }); what `parley up` wrote down is `await readConnectionFile("data")`',
  });
}

export interface TokenOwner {
  readonly role: string;
  /** Null: any. */
  readonly publisher: string | null;
  readonly name?: string;
}

/**
 * `<data>/connection.json`: the address that a running daemon leaves for the commands. It holds credentials: its mode is
 * always 0600, and it is replaced atomically.
 */
export interface ConnectionFile extends Omit<NatsOptions, 'url' | 'name' | 'waitForServer' | 'noEcho'> {
  /**
   * As for `--nats`: several servers, separated by commas. Without credentials, unless those of the servers differ. In the
   * file, `url` is the first server and `urls` has all of several.
   */
  readonly url: string;
  /** The daemon's `subjectPrefix`. */
  readonly prefix: string;
  /** The URL of its HTTP server; absent: it has none. */
  readonly http?: string | undefined;
  /** The token that the daemon made for HTTP; absent: tokens are configured, or none is needed. */
  readonly httpToken?: string | undefined;
  /** Makes the one-time codes of addresses of the console, until the daemon ends. */
  readonly codeKey?: string | undefined;
  /** Whom a code can be for, by its number: the owners of the tokens. */
  readonly codeFor?: readonly TokenOwner[] | undefined;
  /** Its conversations are on the server; absent: in its data directory. */
  readonly store?: 'jetstream' | undefined;
  /** The daemon's process. */
  readonly pid: number;
}

export function connectionFilePath(dataDirectory: string): string {
  return join(dataDirectory, 'connection.json');
}

export async function writeConnectionFile(
  dataDirectory: string,
  { url, ...rest }: ConnectionFile,
): Promise<void> {
  const path = connectionFilePath(dataDirectory);
  const [first, ...more] = splitUrls(url);
  const written = { url: first, ...(more.length > 0 && { urls: [first, ...more] }), ...rest };
  try {
    await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
    await replaceFile(path, `${JSON.stringify(written, null, 2)}\n`);
  } catch (cause) {
    throw new ParleyError('CONNECTION_FILE_UNWRITABLE', `cannot write ${path}: ${messageOf(cause)}`, {
      hint: 'make the data directory writable, or name another with --data',
      cause,
    });
  }
}

/** Null: there is no such file. */
export async function readConnectionFile(dataDirectory: string): Promise<ConnectionFile | null> {
  const path = connectionFilePath(dataDirectory);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(errnoOf(cause) ?? '')) return null;
    throw new ParleyError('CONNECTION_FILE_UNREADABLE', `cannot read ${path}: ${messageOf(cause)}`, {
      hint: 'run the command as the user who runs the daemon, or name the server with --nats URL',
      cause,
    });
  }
  const connection = parse(text);
  if (connection) return connection;
  throw new ParleyError('CONNECTION_FILE_INVALID', `${path} does not hold the address of a daemon`, {
    hint: 'remove the file and start the daemon again with `parley up`',
  });
}

/** Removes the file of the daemon `pid`, unless another daemon has replaced it. */
export async function removeConnectionFile(dataDirectory: string, pid: number): Promise<void> {
  const connection = await readConnectionFile(dataDirectory).catch(() => null);
  if (connection?.pid === pid) await rm(connectionFilePath(dataDirectory), { force: true });
}

/** Null: not such a file. Nobody but the daemon and its user can write it. */
function parse(text: string): ConnectionFile | null {
  const value = parseJson(text);
  if (!isRecord(value)) return null;
  const { urls, ...rest } = value;
  const connection = {
    ...rest,
    ...(Array.isArray(urls) && { url: urls.join(',') }),
  } as Partial<ConnectionFile>;
  const { url, prefix, pid } = connection;
  const isWhole = typeof url === 'string' && typeof prefix === 'string' && typeof pid === 'number';
  return isWhole ? { ...connection, url, prefix, pid } : null;
}
