import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import {
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  type NatsConnection,
  nkeyAuthenticator,
} from 'nats';
import { messageOf, ParleyError } from '../../kernel/index.ts';

/**
 * One way to a server, for the daemon, its commands and the client library.
 *
 * C1 Reconnects for as long as it takes (the client's default gives up after 20 s).
 * C2 A dead peer is noticed within 10 s (`pingInterval` 5 s, twice).
 */

/** How to reach and who to be. User and password may also stand in the URL. */
export interface NatsOptions {
  readonly url: string;
  readonly user?: string;
  readonly password?: string;
  /** Path of a file that holds the password; a line break at its end does not count. */
  readonly passwordFile?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  /** Path of a `.creds` file. */
  readonly credentials?: string;
  /** Path of a file with an nkey seed. */
  readonly nkey?: string;
  /** Paths of PEM files. With them, or with a `tls://` URL, nothing is sent to a server without TLS. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** What answers come to begins with this (default `_INBOX`): a server may leave a user nothing else. */
  readonly inboxPrefix?: string;
  /** Shown by `nats server report connections`. */
  readonly name?: string;
  /** Keep trying the first connection too (the daemon); else the first failure is final (a command). */
  readonly waitForServer?: boolean;
}

const NO_SERVER_HINT =
  'is a nats-server running there? start one, or leave out --nats to let `parley up` bring its own';

const NO_CERTIFICATE_HINT =
  'one that wants a certificate (--nats-tls-cert, --nats-tls-key) says nothing to who shows none';

export async function openNats(options: NatsOptions): Promise<NatsConnection> {
  const shown = urlWithoutSecrets(options.url);
  try {
    return await connect(await connectionOptions(options));
  } catch (error) {
    const message = messageOf(error);
    if (!(error instanceof ParleyError) && /authorization|authentication/i.test(message)) {
      throw new ParleyError('NATS_UNAUTHORIZED', `the server at ${shown} refused the credentials`, {
        hint: 'check user, password, token or credentials file',
        cause: error,
      });
    }
    if (error instanceof ParleyError) throw error;
    const tls = tlsFault(message, shown, error);
    if (tls) throw tls;
    throw new ParleyError('NATS_UNREACHABLE', `cannot connect to NATS at ${shown}: ${message}`, {
      hint: options.tls ? `${NO_SERVER_HINT}; ${NO_CERTIFICATE_HINT}` : NO_SERVER_HINT,
      cause: error,
    });
  }
}

async function connectionOptions(options: NatsOptions): Promise<ConnectionOptions> {
  const inUrl = userInfo(options.url);
  return {
    servers: urlWithoutSecrets(options.url),
    name: options.name ?? 'parley',
    user: options.user ?? inUrl.user,
    pass: options.password ?? (await secretIn(options.passwordFile, 'password file')) ?? inUrl.password,
    token: options.token ?? (await secretIn(options.tokenFile, 'token file')),
    authenticator: await authenticator(options),
    tls: await tlsOptions(options),
    inboxPrefix: options.inboxPrefix,
    maxReconnectAttempts: -1, // C1
    reconnectTimeWait: 250,
    reconnectJitter: 100,
    waitOnFirstConnect: options.waitForServer === true,
    timeout: 5_000,
    pingInterval: 5_000, // C2
    maxPingOut: 2,
  };
}

async function authenticator(options: NatsOptions): Promise<ConnectionOptions['authenticator']> {
  if (options.credentials)
    return credsAuthenticator(await secretFile(options.credentials, 'credentials file'));
  if (options.nkey)
    return nkeyAuthenticator(new Uint8Array(await secretFile(options.nkey, 'nkey seed file')));
  return undefined;
}

async function secretIn(path: string | undefined, what: string): Promise<string | undefined> {
  return path === undefined ? undefined : (await secretFile(path, what)).toString('utf8');
}

/** Read here, so that a path that is wrong is told by its name. */
async function tlsOptions({ tls, url }: NatsOptions): Promise<ConnectionOptions['tls']> {
  if (!tls) return /^(tls|wss):/.test(url) ? addressOf(url) : undefined;
  const [ca, cert, key] = await Promise.all([
    secretIn(tls.ca, 'file of certificate authorities'),
    secretIn(tls.cert, 'certificate'),
    secretIn(tls.key, 'key of the certificate'),
  ]);
  return { ...addressOf(url), ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

/** A certificate is compared with this where the URL has a plain address; the client would compare `localhost`. */
function addressOf(url: string): ConnectionOptions['tls'] {
  const host = /^\w+:\/\/(?:[^@/]*@)?\[?([^\]/]+?)\]?(?::\d+)?\/?$/.exec(url)?.[1];
  const named = { host }; // the client hands on what Node's own TLS takes
  return host !== undefined && isIP(host) !== 0 ? (named as ConnectionOptions['tls']) : {};
}

const TLS_HINT =
  "TLS: is --nats-tls-ca the authority that signed the server's certificate, and its name in the URL?";

/** What went wrong with certificates is told as such: nobody should look for a server that is down. */
function tlsFault(message: string, shown: string, cause: unknown): ParleyError | null {
  const failed = (text: string, hint: string) =>
    new ParleyError('NATS_TLS_FAILED', `no secure connection to NATS at ${shown}: ${text}`, { hint, cause });
  if (/'tls' is not available|^tls$|server_option/i.test(message) || codeOf(cause) === 'SERVER_OPT_NA')
    return failed(
      'the server offers no TLS',
      'have the server use TLS, or leave out tls:// and --nats-tls-…',
    );
  if (/alert|handshake|ECONNRESET/i.test(message) && /ssl|tls/i.test(message))
    return failed(message, 'the server may want a certificate: --nats-tls-cert and --nats-tls-key');
  if (/certificate|altname|self.signed|issuer|ssl|tls/i.test(message)) return failed(message, TLS_HINT);
  return null;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

async function secretFile(path: string, what: string): Promise<Buffer> {
  try {
    return Buffer.from((await readFile(path, 'utf8')).trim());
  } catch (error) {
    throw new ParleyError(
      'NATS_CREDENTIALS_UNREADABLE',
      `cannot read the ${what} ${path}: ${messageOf(error)}`,
      {
        hint: 'give the path of a readable file',
        cause: error,
      },
    );
  }
}

function userInfo(url: string): { user?: string; password?: string } {
  const match = /^\w+:\/\/([^@/]*)@/.exec(url);
  if (!match) return {};
  const [user, password] = (match[1] ?? '').split(':').map(decodeURIComponent);
  return { user: user || undefined, password };
}

/** The URL as it may be shown: without user and password. */
export function urlWithoutSecrets(url: string): string {
  return url.replace(/^(\w+:\/\/)[^@/]*@/, '$1');
}
