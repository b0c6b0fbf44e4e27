import type { JetStreamManager, Msg, NatsConnection } from 'nats';
import { expect, it } from 'vitest';
import { StreamConsumer } from '../../../src/bus/nats/ingress/stream-consumer.ts';

it('a "batch completed" status after the last message of a pull does not end the consumer', async () => {
  let inbox = '';
  let hear: (message: Partial<Msg>) => void = () => undefined;
  const connection = {
    options: {},
    publish: () => undefined,
    isClosed: () => true,
    subscribe(subject: string, { callback }: { callback: (error: null, message: Msg) => void }) {
      inbox = subject;
      hear = (message) => callback(null, message as Msg);
      return { unsubscribe: () => undefined };
    },
  } as unknown as NatsConnection;
  const manager = { consumers: { add: async () => ({ num_pending: 0 }) } } as unknown as JetStreamManager;
  const consumer = await StreamConsumer.open(connection, manager, 'S', 1);
  const send = (sequence: number) =>
    hear({ subject: 'parley.in.a.b', reply: `$JS.ACK.S.C.1.${sequence}.${sequence}.1.0`, data: Buffer.of() });
  const read: number[] = [];
  const pull = () => consumer.pull(1, ({ sequence }) => void read.push(sequence));
  const first = pull();
  send(1);
  expect(await first).toEqual({ kind: 'filled' });
  const second = pull();
  hear({ subject: inbox, headers: { code: 409, description: 'Batch Completed' } as Msg['headers'] });
  send(2);
  expect(await second).toEqual({ kind: 'filled' });
  expect(read).toEqual([1, 2]);
  consumer.close();
});
