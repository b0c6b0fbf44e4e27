import { ErrorCode, Events, type NatsConnection, type Status } from 'nats';
import { ParleyError } from '../../../kernel/index.ts';
import { expiredAt } from './credentials.ts';

/** Credentials that a server does not take: at first, or no longer. */

const REFUSALS: ReadonlySet<unknown> = new Set([
  ErrorCode.AuthorizationViolation,
  ErrorCode.AuthenticationExpired,
  ErrorCode.AccountExpired,
]);

/** What a connection reports, read for one thing: whether the server, asked again after a loss, refuses who it let in before. */
export class CredentialMonitor {
  #isDown = false;
  #isRefused = false;

  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** True if it is refused from this moment on. */
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

/** Follows a connection until it closes. */
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
        'have it issued anew, into the same file',
      )
    : refused(
        ` in ${credentials}`,
        'their user may be revoked, or its account expired or unknown there: the log of the server says which',
      );
}
