import { readFileSync } from 'node:fs';
import {
  type Authenticator,
  credsAuthenticator,
  ErrorCode,
  Events,
  type NatsConnection,
  nkeyAuthenticator,
  type Status,
} from 'nats';
import { messageOf, ParleyError } from '../../../kernel/index.ts';

/**
 * Credentials from files, and their refusal by a server.
 *
 * CREDENTIALS-1 A credentials or seed file is read for each connection, so that the next connection uses renewed contents.
 * CREDENTIALS-2 An unusable file is refused by name before the first connection. Later the last usable contents are used,
 *    because a client whose authenticator throws closes permanently.
 */

export interface CredentialFiles {
  /** Path of a `.creds` file. */
  readonly credentials?: string;
  /** Path of a file with an nkey seed. */
  readonly nkey?: string;
}

export function authenticatorOf({ credentials, nkey }: CredentialFiles): Authenticator | undefined {
  if (credentials !== undefined) return renewing(() => readCredentials(credentials));
  if (nkey !== undefined) return renewing(() => readSeed(nkey));
  return undefined;
}

function renewing(read: () => Authenticator): Authenticator {
  let latest = read();
  return (nonce) => {
    try {
      latest = read();
    } catch {
      // CREDENTIALS-2: the file is missing or being replaced
    }
    return latest(nonce);
  };
}

function readCredentials(path: string): Authenticator {
  const text = secretIn(path, 'credentials file');
  return usable(credsAuthenticator(Buffer.from(`${text}\n`)), () => {
    return new ParleyError(
      'NATS_CREDENTIALS_INVALID',
      `the credentials file ${path} does not contain a user's JWT and seed`,
      { hint: 'create it with `nsc generate creds`; give a file with only a seed to --nats-nkey' },
    );
  });
}

function readSeed(path: string): Authenticator {
  const text = secretIn(path, 'nkey seed file');
  return usable(nkeyAuthenticator(new Uint8Array(Buffer.from(text))), () => {
    return new ParleyError(
      'NATS_CREDENTIALS_INVALID',
      `the nkey seed file ${path} does not contain the seed of an nkey`,
      { hint: 'a seed begins with SU; give a .creds file to --nats-credentials' },
    );
  });
}

/** Tries the authenticator once. Its own error is dropped, because it may include the secret. */
function usable(authenticator: Authenticator, refusal: () => ParleyError): Authenticator {
  try {
    authenticator();
  } catch {
    throw refusal();
  }
  return authenticator;
}

/** The user JWT of a credentials file; empty if there is none. */
export function userJwt(path: string): string {
  try {
    return /^[\w-]+\.[\w-]+\.[\w-]+$/m.exec(readFileSync(path, 'utf8'))?.[0] ?? '';
  } catch {
    return '';
  }
}

/** When the user JWT of a credentials file expired; null if it did not, or has no expiry. */
function expiredAt(path: string, now: number): Date | null {
  try {
    const [, claims = ''] = userJwt(path).split('.');
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp?: unknown };
    return typeof exp === 'number' && exp > 0 && exp * 1_000 <= now ? new Date(exp * 1_000) : null;
  } catch {
    return null;
  }
}

/** The contents of a file, without the line break at its end. Synchronous: the client asks for credentials during its handshake. */
export function secretIn(path: string, what: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (cause) {
    throw new ParleyError(
      'NATS_CREDENTIALS_UNREADABLE',
      `cannot read the ${what} ${path}: ${messageOf(cause)}`,
      { hint: 'give the path of a readable file', cause },
    );
  }
}

const REFUSALS: ReadonlySet<unknown> = new Set([
  ErrorCode.AuthorizationViolation,
  ErrorCode.AuthenticationExpired,
  ErrorCode.AccountExpired,
]);

/** Detects from the status events of a connection whether the server refuses the credentials on reconnect. */
export class CredentialMonitor {
  #isDown = false;
  #isRefused = false;

  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** True if this event is the first refusal. */
  take({ type, data }: Pick<Status, 'type' | 'data'>): boolean {
    const before = this.#isRefused;
    if (type === Events.Disconnect) this.#isDown = true;
    else if (type === Events.Reconnect) {
      this.#isDown = false;
      this.#isRefused = false;
    } else if (type === Events.Error && this.#isDown && REFUSALS.has(data)) this.#isRefused = true;
    return this.#isRefused && !before;
  }
}

/** Passes the status events of a connection to `refusal` until it closes. */
export function monitorCredentials(connection: NatsConnection, refusal: CredentialMonitor): void {
  void (async () => {
    for await (const status of connection.status()) refusal.take(status);
  })();
}

/** `shown`: the URL without secrets. */
export function refusedCredentials(
  shown: string,
  { credentials }: { readonly credentials?: string },
  cause: unknown,
): ParleyError {
  const refused = (reason: string, hint: string) =>
    new ParleyError('NATS_UNAUTHORIZED', `the server at ${shown} refused the credentials${reason}`, {
      hint,
      cause,
    });
  if (credentials === undefined) return refused('', 'check user, password, token, nkey or credentials file');
  const expired = expiredAt(credentials, Date.now());
  return expired
    ? refused(
        `: the user JWT in ${credentials} expired at ${expired.toISOString()}`,
        'have it issued again, into the same file',
      )
    : refused(
        ` in ${credentials}`,
        'the user may be revoked, or its account expired or unknown: the log of the server has the reason',
      );
}
