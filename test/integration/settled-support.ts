import type { Bus, Delivery, Owner } from '../../src/bus/index.ts';
import type { SettledRecord } from '../../src/bus/settled.ts';
import {
  type Broker,
  bytes,
  collector,
  type PostingBus,
  type recordingLog,
  text,
  until,
} from '../unit/bus/support.ts';

/** Two stores, and helpers for tests of the record of settled posts. */

export const A: Owner = { id: 'store-a', name: 'store a' };
export const B: Owner = { id: 'store-b', name: 'store b' };

export const warnings = (lines: ReturnType<typeof recordingLog>['lines']) =>
  lines.filter(({ message }) => message.includes('--replay')).map(({ fields }) => fields);

export function settledOn(broker: Broker) {
  async function post(bus: PostingBus, from: number, to: number): Promise<void> {
    for (let n = from; n <= to; n += 1) await bus.post('alice', `c${n}`, bytes(`${n}`));
  }
  /** Null: no record yet. nats-server 2.9.10 crashes when it reads from a stream that is being created. */
  async function record(): Promise<SettledRecord | null> {
    try {
      const manager = await broker.plain.jetstreamManager();
      if ((await manager.streams.info('PARLEY_SETTLED')).state.messages === 0) return null;
      const query = { last_by_subj: 'parley.settled' };
      return JSON.parse(text((await manager.streams.getMessage('PARLEY_SETTLED', query)).data));
    } catch {
      return null;
    }
  }
  const settledUpTo = (sequence: number) =>
    until(`${sequence} is settled`, async () => (await record())?.settled.upTo === sequence);
  const held = (content: string) => (delivery: Delivery) =>
    text(delivery.body) === content ? new Promise<void>(() => undefined) : Promise.resolve();
  async function stopped(bus: Bus, owner: Owner, posts: number): Promise<void> {
    const seen = collector();
    await bus.startIngress({ ...seen.options(), owner });
    await until('all are settled', () => seen.positions.at(-1)?.sequence === posts);
    await bus.stopIngress();
  }
  return { post, record, settledUpTo, stopped, held };
}
