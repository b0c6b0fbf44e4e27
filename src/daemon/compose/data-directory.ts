import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { type Config, type HttpToken, Secret } from '../../config/index.ts';
import {
  errnoOf,
  fullDiskError,
  type Log,
  makeDirectory,
  messageOf,
  ParleyError,
  replaceFile,
} from '../../kernel/index.ts';

const CODE = 'DATA_DIRECTORY_UNWRITABLE';

/** `make`: for tests, instead of the file system. */
export async function makeDataDirectory(
  path: string,
  make: (path: string) => Promise<unknown> = makeDirectory,
): Promise<void> {
  try {
    await make(path);
  } catch (error) {
    const full = fullDiskError(error, CODE, `the disk of the data directory ${path}`);
    if (full !== error) throw full;
    throw new ParleyError(CODE, `cannot create the data directory ${path}: ${messageOf(error)}`, {
      hint: 'name another with --data, or change its permissions',
      cause: error,
    });
  }
}

const NAME = 'http-token';
const BYTES = 32;
const TOKEN = /^[\w-]{43}$/;
const OTHERS = 0o077;

/**
 * The operator token that a daemon creates when HTTP is on and no token is configured.
 *
 * DATA-DIRECTORY-1  It is the same at every start on a data directory: console tabs and programs survive a restart.
 * DATA-DIRECTORY-2  A token file that other users may have read or written is not trusted: a new token replaces it.
 *
 * Undefined: tokens are configured, or none is needed.
 */
export async function ownHttpToken({ daemon }: Config, log: Log): Promise<HttpToken | undefined> {
  const { data, http } = daemon;
  if (http === null || http.tokens.length > 0) return undefined;
  if (!http.isGuarded) {
    log.warn({ http: http.host }, 'HTTP needs no token: every user of this machine may operate this daemon');
    return undefined;
  }
  const path = join(data, NAME);
  const secret = new Secret((await kept(path, log)) ?? (await make(path)));
  return { role: 'operate', secret, publisher: http.operator, stopOnDisconnect: http.stopOnDisconnect };
}

async function make(path: string): Promise<string> {
  const token = randomBytes(BYTES).toString('base64url');
  try {
    await replaceFile(path, `${token}\n`);
  } catch (cause) {
    throw new ParleyError('HTTP_TOKEN_UNWRITABLE', `cannot write ${path}: ${messageOf(cause)}`, {
      hint: 'make the data directory writable, or set PARLEY_HTTP_TOKEN',
      cause,
    });
  }
  return token;
}

async function kept(path: string, log: Log): Promise<string | null> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { mode, uid } = await file.stat();
      const text = (await file.readFile('utf8')).trimEnd();
      if ((mode & OTHERS) === 0 && uid === process.getuid?.() && TOKEN.test(text)) return text;
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null;
  }
  log.warn({ path }, 'the HTTP token is replaced: its file was damaged, or others could read it');
  return null;
}
