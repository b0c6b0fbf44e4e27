import {
  type Bus,
  type BusLog,
  createSubjects,
  type Delivery,
  type Owner,
  type SharedIngressOptions,
  type StreamPosition,
} from '../../../src/bus/index.ts';
import { createNatsBus, type NatsBusOptions, openNats } from '../../../src/bus/nats/index.ts';
import { startNatsServer } from '../../support/nats-server.ts';

export const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
export const bytes = (value: string) => new TextEncoder().encode(value);

/** Resolves when `condition` returns true; rejects after 30 seconds with `what`. */
export async function until(what: string, condition: () => boolean | Promise<boolean>) {
  const deadline = Date.now() + 30_000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Keeps the log lines. */
export function recordingLog() {
  const lines: { level: 'info' | 'warn' | 'error'; fields: object; message: string }[] = [];
  const at = (level: 'info' | 'warn' | 'error') => (fields: object, message: string) => {
    lines.push({ level, fields, message });
  };
  const log: BusLog = { info: at('info'), warn: at('warn'), error: at('error') };
  return { log, lines };
}

/** A bus, and a way to publish posts to its ingress stream. */
export type PostingBus = Bus & {
  post(publisher: string, conversation: string, body: Uint8Array): Promise<StreamPosition>;
};

/** A bus on its own two connections to `url`. */
export async function openBus(url: string, options: Partial<NatsBusOptions> = {}): Promise<PostingBus> {
  const connection = await openNats({ url, noEcho: options.store !== 'jetstream' }); // as the daemon does
  const feedConnection = await openNats({ url });
  try {
    const { log } = recordingLog();
    const all = { subjects: createSubjects(), log, feedConnection, ...options };
    const bus = await createNatsBus(connection, all);
    const post: PostingBus['post'] = async (publisher, conversation, body) => {
      const isConnected = () =>
        connection.flush().then(
          () => true,
          () => false,
        );
      await until('the connection is there', isConnected);
      const subject = all.subjects.in(publisher, conversation);
      const { seq: sequence } = await connection.jetstream().publish(subject, body);
      return { stream: (await bus.ingressEnd()).stream, sequence };
    };
    return Object.assign(bus, { post });
  } catch (error) {
    await Promise.all([connection.close(), feedConnection.close()]);
    throw error;
  }
}

/** The store that the posts of these tests go to. */
export const OWNER: Owner = { id: 'store-1', name: 'store 1' };

/** Reads posts and keeps them. By default each is settled at once. */
export function collector(settle: (delivery: Delivery) => Promise<void> = async () => undefined) {
  const deliveries: Delivery[] = [];
  const positions: StreamPosition[] = [];
  return {
    deliveries,
    positions,
    contents: () => deliveries.map((delivery) => text(delivery.body)),
    options: (after: StreamPosition | null = null, maxInFlight = 100) => ({
      after,
      owner: OWNER,
      maxInFlight,
      onDelivery: (delivery: Delivery) => {
        deliveries.push(delivery);
        return settle(delivery);
      },
      onPosition: (position: StreamPosition) => {
        positions.push(position);
      },
    }),
  };
}

/** Has the bus read posts, and keeps them. */
export async function collecting(bus: Bus, settle?: Parameters<typeof collector>[0]) {
  const seen = collector(settle);
  await bus.startIngress(seen.options());
  return seen;
}

/** Options of a reader among daemons that share the work; no other one runs, unless `more` says so. */
export function sharedReading(
  seen: ReturnType<typeof collector>,
  more: Partial<SharedIngressOptions> = {},
): SharedIngressOptions {
  const nothing = () => undefined;
  return {
    ...seen.options(),
    ...{ daemon: 'a', failureTimeoutMs: 2_000, mayTakeOver: async () => true },
    ...{ onClaim: nothing, onFloor: nothing, onIngressStream: nothing, ...more },
  };
}

/** A real server, a plain connection to it, and buses that are closed with it. */
export async function startBroker(config = '') {
  const server = await startNatsServer({ config });
  const plain = await openNats({ url: server.url });
  const buses: Bus[] = [];
  const bus = async (options: Partial<NatsBusOptions> = {}) => {
    const opened = await openBus(server.url, options);
    buses.push(opened);
    return opened;
  };
  return {
    server,
    plain,
    own: (made: Bus) => {
      buses.push(made);
      return made;
    },
    bus,
    /** A bus with the lines of its log. */
    recording: async () => {
      const { log, lines } = recordingLog();
      return { bus: await bus({ log }), lines };
    },
    stop: async () => {
      await Promise.all(buses.map((bus) => bus.close()));
      await plain.close();
      await server.stop();
    },
  };
}
export type Broker = Awaited<ReturnType<typeof startBroker>>;
