import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto';
import { link, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/client';
import {
  errnoOf,
  isRecord,
  messageOf,
  ParleyError,
  readOwnText,
  replaceFile,
} from '../../../kernel/index.ts';

/**
 * Logins at MCP servers: `<data>/mcp-logins/<server>.login`.
 *
 * LOGINS-1 A login is encrypted with AES-256-GCM and bound to the name of its server. The key is of the configuration, or in the
 *          file `key` beside it. Files have mode 0600, are replaced atomically and not read through a link.
 * LOGINS-2 A login is for one URL: a server whose URL changed gets none of its tokens.
 */

export interface Login {
  /** The address of the MCP server. */
  readonly url: string;
  /** The URL by which the authorization server was found. */
  readonly issuer: string;
  readonly metadata?: AuthorizationServerMetadata | undefined;
  /** The resource that the tokens are for (RFC 8707); absent: the server names none. */
  readonly resource?: string | undefined;
  readonly client: OAuthClientInformationMixed;
  readonly tokens: OAuthTokens;
  /** Milliseconds since 1970; null: not known. */
  readonly expiresAt: number | null;
  /** Scopes that the server asked for since. */
  readonly wanted?: string;
}

/** What a person does about a server that needs a login. */
export const needsLogin = (server: string) => `needs login: run \`parley mcp login ${server}\``;

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
const HINT = 'run `parley mcp login` for that server again';

export class LoginStore {
  readonly #folder: string;
  readonly #givenKey: string | undefined;

  /** `key`: 64 hexadecimal digits; undefined: the file `key`. */
  constructor(folder: string, key: string | undefined) {
    this.#folder = folder;
    this.#givenKey = key;
  }

  pathOf(server: string): string {
    return join(this.#folder, `${server}.login`);
  }

  /** Null: there is none for this URL. */
  async read(server: string, url: string): Promise<Login | null> {
    const path = this.pathOf(server);
    const text = await readOwn(path);
    if (text === null) return null;
    try {
      const login = JSON.parse(decrypt(JSON.parse(text), await this.#key(), server)) as Login;
      return login.url === url ? login : null; // LOGINS-2
    } catch (error) {
      const why = error instanceof SyntaxError ? 'it is damaged' : messageOf(error);
      throw new ParleyError('MCP_LOGIN_UNREADABLE', `${path}: ${why}: ${needsLogin(server)}`, { hint: HINT });
    }
  }

  async write(server: string, login: Login): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const sealed = encrypt(JSON.stringify(login), await this.#key(), server);
    await replaceFile(this.pathOf(server), `${JSON.stringify(sealed)}\n`);
  }

  /** False: there was none. */
  async remove(server: string): Promise<boolean> {
    return rm(this.pathOf(server)).then(
      () => true,
      (error: unknown) => {
        if (errnoOf(error) === 'ENOENT') return false;
        throw error;
      },
    );
  }

  async #key(): Promise<Buffer> {
    const path = join(this.#folder, 'key');
    const text = this.#givenKey ?? (await readOwn(path)) ?? (await makeKey(this.#folder, path));
    const key = Buffer.from(text.trim(), 'hex');
    if (key.length === KEY_BYTES) return key;
    throw new ParleyError('MCP_LOGIN_UNREADABLE', `${path} is no key`, { hint: `remove it, then ${HINT}` });
  }
}

/** If two processes make a key, both use that of the first. */
async function makeKey(folder: string, path: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = `${path}.${randomUUID()}`;
  await writeFile(temporary, randomBytes(KEY_BYTES).toString('hex'), {
    mode: 0o600,
    flag: 'wx',
    flush: true,
  });
  try {
    await link(temporary, path);
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  } finally {
    await rm(temporary);
  }
  return (await readOwn(path)) ?? '';
}

const readOwn = (path: string) => readOwnText(path, { code: 'MCP_LOGIN_UNREADABLE', hint: HINT });

const boundTo = (server: string) => Buffer.from(`parley mcp login 1 ${server}`);

function encrypt(text: string, key: Buffer, server: string) {
  const iv = randomBytes(12);
  const cipher = createCipheriv(ALGORITHM, key, iv).setAAD(boundTo(server));
  const data = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  const [nonce, tag] = [iv.toString('base64'), cipher.getAuthTag().toString('base64')];
  return { version: 1, nonce, tag, data: data.toString('base64') };
}

function decrypt(sealed: unknown, key: Buffer, server: string): string {
  if (!isRecord(sealed)) throw new Error('it is damaged');
  const [iv, tag, data] = [sealed.nonce, sealed.tag, sealed.data].map((one) =>
    Buffer.from(typeof one === 'string' ? one : '', 'base64'),
  ) as [Buffer, Buffer, Buffer];
  try {
    const decipher = createDecipheriv(ALGORITHM, key, iv, { authTagLength: 16 });
    decipher.setAAD(boundTo(server)).setAuthTag(tag);
    return Buffer.concat([decipher.update(data), decipher.final()]).toString('utf8');
  } catch {
    throw new Error('it is damaged, or was encrypted with another key or for another server');
  }
}
