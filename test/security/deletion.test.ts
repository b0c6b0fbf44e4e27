import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type NatsConnection } from 'nats';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { FakeRequest } from '../support/fake-provider.ts';
import { perTest } from '../support/lifetime.ts';
import { followUntil, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject } from '../support/project.ts';

/**
 * An attacker who can read the data directory or the streams searches for texts of a deleted conversation: a post,
 * its title, a call, a large output, and a refused post.
 */

const MARKER = 'Zq7hunter2Zq7';
const PAM = '---\nname: Pam\ndescription: works\nphases: [chat]\ntools: [shell]\n---\nPERSONA OF PAM';

let connection: NatsConnection;

const answer = ({ json }: FakeRequest) => {
  if (!JSON.stringify(json.messages).includes(MARKER)) return { text: 'hello' };
  if (json.messages?.at(-1)?.role === 'tool') return { text: `noted ${MARKER}` };
  const command = `echo ${MARKER}; head -c 60000 /dev/zero | tr '\\0' x`;
  return { toolCalls: [{ name: 'shell', arguments: JSON.stringify({ command }) }] };
};

const project = perTest(() => {
  const tools = { policy: [{ tool: 'shell', allow: true }] };
  return openProject({
    nats: {},
    agents: { pm: PAM },
    settings: { tools },
    model: answer,
    env: { PARLEY_CRASH_POINTS: 'conversation-removed:1' },
    // read with --allow-crash-points only
  });
});
const { nats } = project;
beforeEach(async () => {
  connection = await connect({ servers: nats.url });
});
afterEach(async () => {
  await connection.close();
});

async function filesWith(text: string, directory: string): Promise<string[]> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true });
  const found: string[] = [];
  for (const name of names) {
    if (!name.isFile()) continue;
    const path = join(name.parentPath, name.name);
    if ((await readFile(path).catch(() => Buffer.alloc(0))).includes(text)) found.push(path);
  }
  return found;
}

async function messagesWith(text: string): Promise<string[]> {
  const manager = await connection.jetstreamManager();
  const found: string[] = [];
  for await (const { config, state } of manager.streams.list()) {
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
      const message = await manager.streams.getMessage(config.name, { seq }).catch(() => null);
      if (message && Buffer.from(message.data).includes(text))
        found.push(`${config.name} ${message.subject}`);
    }
  }
  return found;
}

const wholeText = async () => ({
  files: await filesWith(MARKER, project.data),
  server: await filesWith(MARKER, nats.directory),
  messages: await messagesWith(MARKER),
});
const NOTHING = { files: [], server: [], messages: [] };

/** A conversation with texts in every possible place, and another one that is kept. */
async function converse(): Promise<void> {
  const client = await project.connect();
  await connection.jetstream().publish('parley.in.alice.secret', `remember ${MARKER}`);
  await followUntil(client, 'secret', turnsEnded(1));
  const refused = JSON.stringify({ content: MARKER, to: ['no-such-agent'] });
  await connection.jetstream().publish('parley.in.alice.secret', refused);
  await client.post({ conversation: 'kept', publisher: 'alice', content: 'hello' });
  const letters = async () => (await project.parley('dead', 'ls', '--json')).json();
  await expect.poll(letters).toHaveLength(1);
  await expect.poll(async () => (await client.request('conversations', {})).conversations.length).toBe(2);
}

describe('searching for a text of a deleted conversation', () => {
  it('no text of a deleted conversation is in the data directory, the files of the server or the streams, and rm reports what it erased', async () => {
    const daemon = await project.up();
    await converse();
    const before = await wholeText();
    expect(before.files.length).toBeGreaterThan(1);
    expect(before.messages.map((one) => one.split(' ')[0]).sort()).toEqual([
      'PARLEY_DEAD',
      'PARLEY_IN',
      'PARLEY_IN',
    ]);

    const removed = await project.parley('rm', 'secret', '--json');
    expect(removed.json()[0]).toMatchObject({
      deleted: true,
      existed: true,
      erased: { deadLetters: 1, outputs: 1, records: 3 },
    });
    await expect.poll(wholeText, { timeout: 30_000, interval: 500 }).toEqual(NOTHING);
    expect(await daemon.stop()).toBe(0);
    expect(await wholeText()).toEqual(NOTHING);
    expect((await filesWith('hello', project.data)).length).toBeGreaterThan(0); // the other conversation is kept
  });

  itLong(
    'no text of a deleted conversation is left after a daemon that was killed during the deletion restarts',
    async () => {
      const first = await project.up('--allow-crash-points');
      await converse();
      expect((await project.parley('rm', 'secret')).code).not.toBe(0);
      expect(await first.exited).not.toBe(0);
      expect((await wholeText()).messages.length).toBeGreaterThan(0);

      await project.up();
      await expect.poll(wholeText, { timeout: 30_000, interval: 500 }).toEqual(NOTHING);
      expect((await project.parley('rm', 'secret')).code).toBe(0);
      const listed = (await project.parley('ls', '--json')).json().map(({ id }) => id);
      expect(listed).toEqual(['kept']);
    },
  );

  itLong(
    'no message of a deleted conversation is left in any stream if the logs are on the server',
    async () => {
      await project.up('--store', 'jetstream');
      await converse();
      const removed = await project.parley('rm', 'secret');
      expect(removed.stdout).toContain('not reached:');
      const inMessages = () => messagesWith(MARKER);
      await expect.poll(inMessages, { timeout: 30_000, interval: 500 }).toEqual([]);
      expect(await filesWith(MARKER, project.data)).toEqual([]);
    },
  );
});
