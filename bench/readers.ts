import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Entry } from '../src/conversation/index.ts';
import { ONE_CONVERSATION } from '../src/gateway/events/feeds.ts';
import { GREETING } from '../src/gateway/events/routes.ts';
import type { Arrival } from '../src/gateway/index.ts';
import { createFakeDaemon, messageEntry, openGateway } from '../test/unit/gateway/support.ts';
import type { Told } from './support/listeners.ts';
import { interleave, median, ratioOf, report, rounded } from './support/report.ts';

const { entry, live } = ONE_CONVERSATION;

/**
 * What an event costs the server when many read one live thread: processor time of this process, per event. The readers
 * are a process of their own. Events come one by one, each written to every reader before the next.
 *
 * - `ratio`: against a bare HTTP server that writes the event down once and gives the same bytes to as many responses:
 *   what no server can do with less.
 * - `toSerialisation`: against `JSON.stringify` and the frame of one event alone.
 *
 *     npx tsx bench/readers.ts [readers] [events] [rounds]
 */

const [readerCount = '100', eventCount = '100', roundCount = '9'] = process.argv.slice(2);
const readers = Number(readerCount);
const events = Number(eventCount);
const rounds = Number(roundCount);
const WARM_UP = 2;
/** Between two events: they do not come in heaps. */
const PAUSE_MS = 5;
const CONVERSATION = 'demo';

interface Stage {
  readonly url: string;
  /** Bytes that each reader has got before the first event. */
  readonly before: number;
  /** Gives everybody the next event; answers how many bytes it is. */
  readonly send: (round: number) => number;
}

function processorMs(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
}

async function told(listeners: ChildProcess, message: Told): Promise<void> {
  const there = once(listeners, 'message');
  listeners.send(message);
  await there;
}

/** Processor time of one event, in milliseconds. */
async function costOf(listeners: ChildProcess, { url, before, send }: Stage): Promise<number> {
  await told(listeners, { kind: 'read', url, readers });
  let each = before;
  await told(listeners, { kind: 'bytes', each });
  const start = process.cpuUsage();
  for (let n = 0; n < events; n += 1) {
    each += send(n);
    await pause(PAUSE_MS);
  }
  await told(listeners, { kind: 'bytes', each });
  return processorMs(start) / events;
}

const WORDS = 'What the agents said to one another about the plan, and why. '.repeat(16);

const daemon = createFakeDaemon();
const { gateway } = await openGateway({ heartbeatMs: 600_000 }, daemon);

function entries(): { stage: () => Stage; event: (n: number) => Uint8Array } {
  const next = () => daemon.append(CONVERSATION, WORDS)[0] as Entry;
  return {
    event: (n) => entry(messageEntry(n, WORDS), 'demo'),
    stage: () => {
      const from = daemon.logs.get(CONVERSATION)?.length ?? 0;
      return {
        url: `${gateway.url}/api/conversations/${CONVERSATION}/events?from=${from}`,
        before: GREETING.length,
        send: () => entry(next(), 'demo').length,
      };
    },
  };
}

function chunks(): { stage: () => Stage; event: (n: number) => Uint8Array } {
  const chunk = (n: number) => ({ turnId: 't', call: 'c', n, type: 'text' as const, delta: 'word ' });
  const arrival = (n: number): Arrival => ({ kind: 'live', agent: 'pm', chunk: chunk(n) });
  return {
    event: (n) => live(chunk(n), 'pm', 'demo'),
    stage: () => ({
      ...entries().stage(),
      send(n) {
        daemon.publish(CONVERSATION, arrival(n));
        return live(chunk(n), 'pm', 'demo').length;
      },
    }),
  };
}

/** One serialisation, the same bytes to everybody; nothing else. */
async function openFloor() {
  const open = new Set<ServerResponse>();
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.write(GREETING);
    open.add(response);
    response.once('close', () => open.delete(response));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return {
    stage: (event: (n: number) => Uint8Array): Stage => ({
      url,
      before: GREETING.length,
      send(n) {
        const bytes = event(n);
        for (const response of open) response.write(bytes);
        return bytes.length;
      },
    }),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Processor time of writing one event down. */
function serialisation(event: (n: number) => Uint8Array): number {
  const times = 20_000;
  const start = process.cpuUsage();
  for (let n = 0; n < times; n += 1) event(n);
  return processorMs(start) / times;
}

daemon.append(CONVERSATION, WORDS);
const listeners = fork(fileURLToPath(new URL('support/listeners.ts', import.meta.url)), {
  execArgv: process.execArgv,
});
const floor = await openFloor();
try {
  for (const [text, { stage, event }] of [
    ['entries', entries()],
    ['chunks', chunks()],
  ] as const) {
    const measured = await interleave(
      {
        routes: () => costOf(listeners, stage()),
        floor: () => costOf(listeners, floor.stage(event)),
        alone: async () => serialisation(event),
      },
      rounds,
      WARM_UP,
    );
    report('readers', {
      text,
      readers,
      ratio: ratioOf(measured.routes, measured.floor),
      wanted: '<= 2',
      toSerialisation: ratioOf(measured.routes, measured.alone),
      floorToSerialisation: ratioOf(measured.floor, measured.alone),
      eventMs: rounded(median(measured.routes)),
      floorMs: rounded(median(measured.floor)),
      serialisationMs: rounded(median(measured.alone), 5),
    });
  }
} finally {
  floor.close();
  listeners.disconnect();
  await gateway.close();
}
