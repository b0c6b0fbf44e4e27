import { readFile } from 'node:fs/promises';
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
  readonly token?: string;
  /** Path of a `.creds` file. */
  readonly credentials?: string;
  /** Path of a file with an nkey seed. */
  readonly nkey?: string;
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  /** Shown by `nats server report connections`. */
  readonly name?: string;
  /** Keep trying the first connection too (the daemon); else the first failure is final (a command). */
  readonly waitForServer?: boolean;
}

const NO_SERVER_HINT =
  'is a nats-server running there? start one, or leave out --nats to let `parley up` bring its own';

export async function openNats(options: NatsOptions): Promise<NatsConnection> {
  const shown = urlWithoutSecrets(options.url);
  try {
    return await connect(await connectionOptions(options));
  } catch (error) {
    const message = messageOf(error);
    if (/authorization|authentication/i.test(message)) {
      throw new ParleyError('NATS_UNAUTHORIZED', `the server at ${shown} refused the credentials`, {
        hint: 'check user, password, token or credentials file',
        cause: error,
      });
    }
    throw new ParleyError('NATS_UNREACHABLE', `cannot connect to NATS at ${shown}: ${message}`, {
      hint: NO_SERVER_HINT,
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
    pass: options.password ?? inUrl.password,
    token: options.token,
    authenticator: await authenticator(options),
    tls: options.tls && { caFile: options.tls.ca, certFile: options.tls.cert, keyFile: options.tls.key },
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
