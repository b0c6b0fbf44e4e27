import { ErrorCode, Events, type NatsConnection, type Status } from 'nats';
import { ParleyError } from '../../../kernel/index.ts';
import { expiredAt } from './credentials.ts';

/** Credentials that a server refuses, at first or later. */

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
