import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type NatsOptions, openNats } from '../../src/bus/nats/index.ts';

/** A person in a process and a conversation of its own: posts, waits for the answer, posts again. */
export interface Talker {
  /** Milliseconds from each post to its answer; ends early at `enough`. */
  talk(times: number): Promise<number[]>;
  enough(): void;
  close(): void;
}

const SELF = fileURLToPath(import.meta.url);
const PAUSE_MS = 100;

/** `isAlone`: no daemon answers; a post is measured until it is acknowledged. */
export async function startTalker(address: NatsOptions, isAlone = false): Promise<Talker> {
  const child = fork(SELF, [JSON.stringify(address), String(isAlone)]);
  await once(child, 'message');
  return {
    async talk(times) {
      child.send({ times: Number.isFinite(times) ? times : null });
      const [latencies] = await once(child, 'message');
      return latencies;
    },
    enough: () => void child.send({ enough: true }),
    close: () => child.disconnect(),
  };
}

async function talkAsTold(address: NatsOptions, isAlone: boolean): Promise<void> {
  const nats = await openNats(address);
  const stream = nats.jetstream();
  let answered = () => {};
  let isEnough = false;
  nats.subscribe('parley.log.quiet', {
    callback: (_, message) => {
      const { entries } = message.json() as { entries: { type: string }[] };
      if (entries.some(({ type }) => type === 'turn-ended')) answered();
    },
  });
  await nats.flush();
  const talk = async (times: number) => {
    const latencies: number[] = [];
    while (latencies.length < times && !isEnough) {
      const answer = new Promise<void>((resolve) => {
        answered = resolve;
      });
      const started = performance.now();
      await stream.publish('parley.in.somebody.quiet', 'x'.repeat(200), { timeout: 60_000 });
      if (!isAlone) await answer;
      latencies.push(performance.now() - started);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    return latencies;
  };
  process.on('message', (told: { times?: number | null; enough?: boolean }) => {
    if (told.enough) isEnough = true;
    else void talk(told.times ?? Number.POSITIVE_INFINITY).then((latencies) => process.send?.(latencies));
  });
  process.on('disconnect', () => void nats.close());
  process.send?.('ready');
}

if (process.argv[1] === SELF)
  await talkAsTold(JSON.parse(process.argv[2] ?? '{}'), process.argv[3] === 'true');
