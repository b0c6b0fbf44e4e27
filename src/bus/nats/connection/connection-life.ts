import { Events, type NatsConnection } from 'nats';
import { messageOf, within } from '../../../kernel/index.ts';
import type { BusLog } from '../../port.ts';
import { CredentialMonitor } from './credentials.ts';

/** Limits the wait for a server that does not answer. */
const CLOSE_DEADLINE_MS = 2_000;

const REFUSED =
  'the NATS server refuses the credentials of this daemon (expired, revoked or changed); retrying, with the contents of their file each time';

const FORBIDDEN =
  'the NATS user of this daemon lacks a right: render the permissions again with `parley nats-config`, reload the server and restart the daemon';

/**
 * Whether the server is reachable. While it is not, the client drops messages without an error, and requests wait for their
 * whole timeout. So wait for the connection before a request.
 */
export interface ConnectionWatch {
  /** False from each loss of the connection to its return. */
  readonly isConnected: boolean;
  /** True at once or when the connection is back; false if that takes longer than `timeoutMs` or `signal` aborts. */
  connected(timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  /** Rejects as soon as the connection is lost, because no answer can arrive. Only for requests that change nothing. */
  whileConnected<T>(asking: Promise<T>): Promise<T>;
}

/** Reports every loss and return of the connection until it closes. */
export function watchConnection(
  connection: NatsConnection,
  log: BusLog,
  onLost: () => void,
): ConnectionWatch {
  let isUp = true;
  const refusal = new CredentialMonitor();
  const waiting = new Set<() => void>();
  const asking = new Set<() => void>();
  const follow = async () => {
    for await (const { type, data: server, permissionContext } of connection.status()) {
      const isRefusedNow = refusal.take({ type, data: server });
      if (type === Events.Disconnect) {
        if (isUp) log.warn({ server }, 'the connection to NATS was lost; reconnecting');
        isUp = false;
        for (const giveUp of asking) giveUp();
        onLost();
      } else if (type === Events.Reconnect) {
        isUp = true;
        log.info({ server }, 'the connection to NATS is restored');
        for (const wake of waiting) wake();
      } else if (isRefusedNow) {
        log.error({ reason: String(server) }, REFUSED);
      } else if (type === Events.Error && !refusal.isRefused) {
        const { operation, subject } = permissionContext ?? {};
        // The operation that publishes reports its own failure; a refused subscription receives nothing.
        const text = operation === 'subscription' ? FORBIDDEN : 'NATS reports an error';
        log.error({ reason: String(server), operation, subject }, text);
      }
    }
  };
  follow().catch((error: unknown) =>
    log.warn({ reason: messageOf(error) }, 'the NATS connection is no longer monitored'),
  );

  const connected = async (timeoutMs: number, signal?: AbortSignal) => {
    if (isUp || signal?.aborted) return isUp;
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        waiting.delete(done);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      waiting.add(done);
      signal?.addEventListener('abort', done);
    });
    return isUp;
  };
  const whileConnected = <T>(work: Promise<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const giveUp = () => reject(new Error('the connection was lost before the server answered'));
      asking.add(giveUp);
      work.then(resolve, reject).finally(() => asking.delete(giveUp));
    });
  return {
    get isConnected() {
      return isUp;
    },
    connected,
    whileConnected,
  };
}

/** Runs `last`, drains and closes, within one deadline. Does not reject. */
export async function closeConnection(
  connection: NatsConnection,
  last: () => Promise<void> = async () => undefined,
): Promise<void> {
  const drain = async () => {
    if (!connection.isClosed()) await connection.drain();
  };
  const work = last()
    .catch(() => undefined) // drained and closed all the same
    .then(drain);
  await within(CLOSE_DEADLINE_MS, work).catch(() => undefined); // closed next, however it ended
  await connection.close();
}
