import { messageOf } from '../../../../kernel/index.ts';
import { openNats } from '../../connection/connection.ts';
import type { Credentials, Endpoint } from '../directory.ts';
import { LOOPBACK } from '../port.ts';

/** The result of one attempt to connect to the server. */
export type ProbeResult =
  | { readonly kind: 'ready'; readonly version: string; readonly maxPayload: number }
  | { readonly kind: 'not-ready'; readonly why: string };

const JETSTREAM_TIMEOUT_MS = 2_000;

export function urlOf(endpoint: Endpoint): string {
  return `nats://${LOOPBACK}:${endpoint.port}`;
}

/** Ready: the server accepts the credentials, has the expected name, and JetStream answers. */
export async function probeServer(endpoint: Endpoint, credentials: Credentials): Promise<ProbeResult> {
  try {
    const connection = await openNats({
      url: urlOf(endpoint),
      nkey: credentials.nkey,
      managed: true,
      name: 'parley-probe',
    });
    try {
      const name = connection.info?.server_name;
      if (name !== endpoint.name) return notReady(`another server answers there: ${name}`);
      await connection.jetstreamManager({ timeout: JETSTREAM_TIMEOUT_MS }); // asks for the account's info
      return {
        kind: 'ready',
        version: connection.info?.version ?? '0',
        maxPayload: connection.info?.max_payload ?? 0,
      };
    } finally {
      await connection.close();
    }
  } catch (error) {
    return notReady(messageOf(error));
  }
}

function notReady(why: string): ProbeResult {
  return { kind: 'not-ready', why };
}
