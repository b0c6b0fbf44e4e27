import { isIP } from 'node:net';
import { type ConnectionOptions, connect, type NatsConnection } from 'nats';
import { messageOf, ParleyError } from '../../kernel/index.ts';
import { authenticatorOf, type CredentialFiles, secretIn, userJwt } from './credentials.ts';
import { Refusal, refusedCredentials, watchRefusal } from './refusal.ts';

/**
 * One way to a server, for the daemon, its commands and the client library.
 *
 * C1 Reconnects for as long as it takes (the client's default gives up after 20 s), also to a server that refuses who was let
 *    in before: credentials are renewed in their file, and a revocation is taken back. Only who waits for the first connection,
 *    too, is told of a refusal by the end of it.
 * C2 A dead peer is noticed within 10 s (`pingInterval` 5 s, twice).
 */

/** How to reach and who to be. User and password may also stand in the URL. */
export interface NatsOptions extends CredentialFiles {
  readonly url: string;
  readonly user?: string;
  readonly password?: string;
  /** Path of a file that holds the password; a line break at its end does not count. */
  readonly passwordFile?: string;
  readonly token?: string;
  readonly tokenFile?: string;
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

/** What a server takes by default as one line; and what the client's first line holds besides the JWT, about. */
const CONTROL_LINE = 4_096;
const AROUND_A_JWT = 400;

const WAIT_MS = 250;
const JITTER_MS = 100;
/** A server writes each refusal down. */
const REFUSED_WAIT_MS = 2_000;

export async function openNats(options: NatsOptions): Promise<NatsConnection> {
  const shown = urlWithoutSecrets(options.url);
  const refusal = new Refusal();
  try {
    const connection = await connect(await connectionOptions(options, refusal));
    watchRefusal(connection, refusal);
    return connection;
  } catch (error) {
    const message = messageOf(error);
    if (!(error instanceof ParleyError) && /authorization|authentication/i.test(message)) {
      throw refusedCredentials(shown, options, error);
    }
    if (error instanceof ParleyError) throw error;
    const tls = tlsFault(message, shown, error);
    if (tls) throw tls;
    throw new ParleyError('NATS_UNREACHABLE', `cannot connect to NATS at ${shown}: ${message}`, {
      hint: unreachableHint(options),
      cause: error,
    });
  }
}

/** Some servers say nothing to whom they do not understand, or nothing that the client hands on. */
function unreachableHint({ tls, credentials }: NatsOptions): string {
  const bytes = credentials === undefined ? 0 : userJwt(credentials).length;
  if (bytes + AROUND_A_JWT > CONTROL_LINE)
    return `${NO_SERVER_HINT}; the user JWT in ${credentials} has ${bytes} bytes, and with it the first line is longer than a server takes by default: set max_control_line of the server to 16KB`;
  return tls ? `${NO_SERVER_HINT}; ${NO_CERTIFICATE_HINT}` : NO_SERVER_HINT;
}

async function connectionOptions(options: NatsOptions, refusal: Refusal): Promise<ConnectionOptions> {
  const inUrl = userInfo(options.url);
  return {
    servers: urlWithoutSecrets(options.url),
    name: options.name ?? 'parley',
    user: options.user ?? inUrl.user,
    pass: options.password ?? (await secretIn(options.passwordFile, 'password file')) ?? inUrl.password,
    token: options.token ?? (await secretIn(options.tokenFile, 'token file')),
    authenticator: authenticatorOf(options),
    tls: await tlsOptions(options),
    inboxPrefix: options.inboxPrefix,
    maxReconnectAttempts: -1, // C1
    ignoreAuthErrorAbort: options.waitForServer !== true, // C1
    reconnectDelayHandler: () => (refusal.isRefused ? REFUSED_WAIT_MS : WAIT_MS) + Math.random() * JITTER_MS,
    waitOnFirstConnect: options.waitForServer === true,
    timeout: 5_000,
    pingInterval: 5_000, // C2
    maxPingOut: 2,
  };
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
