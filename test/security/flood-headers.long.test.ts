import { connect as connectTo } from 'node:net';
import { headers, type MsgHdrs, type NatsConnection } from 'nats';
import { beforeEach, expect, it } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { NOTING } from '../support/project.ts';
import { startGuarded } from '../support/server-users.ts';

/** A publisher writes headers that no client writes, in a flood of long posts, too: then bodies are not read for two seconds. */
const USERS = {
  daemon: { role: 'daemon' },
  alice: { role: 'publisher', conversations: ['demo'] },
  bob: { role: 'publisher', conversations: ['demo'] },
};
/** Bytes of a post: 20 of them use up the rate of a minute. */
const LONG = 62 * 16_384 - 100;

let alice: NatsConnection;
let bob: NatsConnection;

const project = perTest(() => startGuarded(NOTING, USERS));
beforeEach(async () => {
  alice = await project.connectAs('alice');
  bob = await project.connectAs('bob');
});

async function ask(id: string) {
  const body = JSON.stringify({ content: 'Hello', id });
  return (await bob.request('parley.api.post.bob.demo', body, { timeout: 30_000 })).json();
}

async function floodLong() {
  const long = 'x'.repeat(LONG);
  for (let place = 0; place < 60; place++) {
    alice.publish('parley.in.alice.demo', long);
    await alice.flush();
  }
}

function header(name: string, value: string): MsgHdrs {
  const made = headers();
  made.append(name, value);
  return made;
}

it.each(['NaN', 'Infinity', '1e300', '-1'])(
  'a post whose header Nats-Msg-Size is %s does not keep another publisher from being answered',
  async (size) => {
    for (let round = 0; round < 4; round++) {
      await floodLong();
      for (let place = 0; place < 20; place++)
        alice.publish('parley.in.alice.demo', 'Hello', { headers: header('Nats-Msg-Size', size) });
      await alice.flush();
    }
    expect(await ask('h')).toMatchObject({ id: 'h', duplicate: false });
  },
  120_000,
);

it.each([
  ['parley.in.alice.demo', 'bad key: x'],
  ['parley.in.alice.demo', 'é: x'],
  ['parley.api.post.alice.demo', 'bad key: x'],
])(
  'a message on %s with the header line %j does not keep another publisher from being answered',
  async (subject, line) => {
    const url = new URL(project.server.url);
    const socket = connectTo(Number(url.port), url.hostname);
    const pongs = new Promise<void>((resolve) => {
      let text = '';
      socket.on('data', (chunk) => {
        text += chunk;
        if (text.split('PONG').length > 2) resolve();
      });
    });
    const login = { user: 'alice', pass: 'alice-pw', headers: true, verbose: false, pedantic: false };
    const head = `NATS/1.0\r\n${line}\r\n\r\n`;
    const size = Buffer.byteLength(head);
    socket.write(`CONNECT ${JSON.stringify({ ...login, lang: 'raw', version: '1' })}\r\nPING\r\n`);
    socket.write(`HPUB ${subject} ${size} ${size + 5}\r\n${head}Hello\r\nPING\r\n`);
    await pongs;
    socket.destroy();
    expect(await ask('h')).toMatchObject({ id: 'h', duplicate: false });
  },
  120_000,
);
