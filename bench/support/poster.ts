import { connect } from 'nats';
import { STAMPS, stampOf } from './endpoint.ts';

/**
 * People in one process: each posts in a conversation of its own, waits until the turn has ended, and posts again.
 * It also reads the live text and counts its tokens, their delays and the bytes of its messages.
 */

export interface Window {
  /** `parley` or `floor`: the first token of all subjects. */
  readonly prefix: string;
  readonly conversations: number;
  readonly ms: number;
  readonly live?: boolean;
}

export interface Measured {
  /** From a post to the message that ends its turn, in milliseconds, of turns that ended within the window. */
  readonly latencies: readonly number[];
  readonly tokens: number;
  readonly delays: readonly number[];
  readonly bytes: number;
}

/** A conversation gets a successor after so many turns, so that histories stay short. */
const TURNS_OF_ONE = 50;
const POST = 'What is the next step of the plan? '.repeat(3);
const TOKEN = /[0-9a-z]{4}(?= )/g;

const nats = await connect({ servers: process.argv[2] ?? '' });
const stream = nats.jetstream();
const turns = new Map<string, number>();
const waiting = new Map<string, () => void>();
let [tokens, bytes, delays] = [0, 0, [] as number[]];

function readLive(subject: string, data: Uint8Array): void {
  const now = stampOf(performance.timeOrigin + performance.now());
  const text = Buffer.from(data).toString();
  bytes += `MSG ${subject} 1 ${data.length}\r\n\r\n`.length + data.length;
  const delta = text.startsWith('{') ? String(JSON.parse(text).delta ?? '') : text;
  for (const [stamp] of delta.matchAll(TOKEN)) {
    tokens += 1;
    delays.push(((now - Number.parseInt(stamp, 36) + STAMPS) % STAMPS) / 10);
  }
}

for (const prefix of ['parley', 'floor']) {
  nats.subscribe(`${prefix}.log.>`, {
    callback: (_, { subject, data }) => {
      if (!Buffer.from(data).includes('"turn-ended"')) return;
      waiting.get(subject)?.();
      waiting.delete(subject);
    },
  });
}

async function talk({ prefix, ms }: Window, at: number, latencies: number[]): Promise<void> {
  const until = performance.now() + ms;
  while (performance.now() < until) {
    const turn = turns.get(`${prefix}-${at}`) ?? 0;
    turns.set(`${prefix}-${at}`, turn + 1);
    const conversation = `c${at}-${Math.floor(turn / TURNS_OF_ONE)}`;
    const publisher = conversation.replace('c', 'p'); // one for each, since a daemon limits the rate of a publisher
    const ended = new Promise<void>((resolve) => waiting.set(`${prefix}.log.${conversation}`, resolve));
    const started = performance.now();
    await stream.publish(`${prefix}.in.${publisher}.${conversation}`, POST, { timeout: 60_000 });
    await ended;
    const now = performance.now();
    if (now <= until) latencies.push(now - started);
  }
}

process.on('message', async (window: Window) => {
  [tokens, bytes, delays] = [0, 0, []];
  const subject = `${window.prefix}.live.>`;
  const live = window.live
    ? nats.subscribe(subject, { callback: (_, message) => readLive(message.subject, message.data) })
    : null;
  await nats.flush();
  const latencies: number[] = [];
  await Promise.all(Array.from({ length: window.conversations }, (_, at) => talk(window, at, latencies)));
  live?.unsubscribe();
  process.send?.({ latencies, tokens, delays, bytes } satisfies Measured);
});
process.on('disconnect', () => process.exit());
process.send?.('ready');
