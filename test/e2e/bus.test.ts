import { connect as connectToNats, type NatsConnection, StringCodec } from 'nats';
import { beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../support/in-process.ts';
import { shared } from '../support/lifetime.ts';
import { checkLog, entriesOf, followUntil, turnsEnded } from '../support/log.ts';
import { startProject } from '../support/project.ts';

/** The bus as any NATS program uses it, without code of Parley: what is accepted, and what is refused. */
describe('a program with the bare nats package', () => {
  const codec = StringCodec();
  let program: NatsConnection;

  const project = shared(() =>
    startProject({
      nats: { config: 'max_payload: 65536' },
      model: () => ({ text: 'Hello to you, Alice.', delayMs: 5 }),
    }),
  );
  const { nats, client, daemon } = project;
  beforeAll(async () => {
    program = await connectToNats({ servers: nats.url });
    project.defer(() => program.close());
  });

  /** Publishes. Returns the dead letter that results. */
  async function refusalOf(conversation: string, body: string | Uint8Array, at = conversation) {
    const subscription = program.subscribe(`parley.dead.alice.${at}`, { max: 1, timeout: 10_000 });
    await program.flush();
    await program.jetstream().publish(`parley.in.alice.${conversation}`, body);
    for await (const message of subscription) return JSON.parse(codec.decode(message.data));
    throw new Error('no dead letter came');
  }

  async function request(endpoint: string, body: string | object) {
    const payload = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await program.request(`parley.api.${endpoint}`, codec.encode(payload), {
      timeout: 10_000,
    });
    return {
      code: answer.headers?.get('Nats-Service-Error-Code') ?? '',
      body: JSON.parse(codec.decode(answer.data)),
    };
  }

  it('a NATS program posts, gets the acknowledgement, and reads the answer in the log feed and the live chunks', async () => {
    const log: { content?: string; type: string }[] = [];
    const live: { n: number; delta: string; type: string }[] = [];
    const feed = program.subscribe('parley.log.demo');
    const chunks = program.subscribe('parley.live.demo.pm', {
      callback: (_, message) => live.push(JSON.parse(codec.decode(message.data))),
    });
    await program.flush();
    const receipt = await program.request('parley.in.alice.demo', codec.encode('Hello?'), { timeout: 5_000 });
    expect(JSON.parse(codec.decode(receipt.data))).toMatchObject({ stream: 'PARLEY_IN', seq: 1 });
    for await (const message of feed) {
      log.push(...JSON.parse(codec.decode(message.data)).entries);
      if (log.some(({ type }) => type === 'turn-ended')) break;
    }
    expect(log.filter(({ type }) => type === 'message').map(({ content }) => content)).toEqual([
      'Hello?',
      'Hello to you, Alice.',
    ]);
    await expect.poll(() => live.map(({ delta }) => delta).join('')).toBe('Hello to you, Alice.');
    expect(live.map(({ n }) => n)).toEqual(live.map((_, at) => at));
    chunks.unsubscribe();
  });

  it('a NATS program that sends the same id three times, raw and by request, adds one entry and one turn', async () => {
    const body = JSON.stringify({ id: 'once', content: 'only once' });
    await program.jetstream().publish('parley.in.alice.ids', body);
    await program.jetstream().publish('parley.in.alice.ids', body);
    const post = { conversation: 'ids', publisher: 'alice', id: 'once', content: 'only once' };
    const { body: answer } = await request('post', post);
    expect(answer).toMatchObject({
      conversation: 'ids',
      id: 'once',
      index: 0,
      duplicate: true,
      agents: ['pm'],
    });
    await followUntil(client, 'ids', turnsEnded(1));
    const other = await request('post', { ...post, content: 'something else' });
    expect(other.body).toMatchObject({ code: 'ID_CONFLICT', message: expect.stringContaining('once') });
    expect(other.code).not.toBe('');
    const dead = await refusalOf('ids', JSON.stringify({ id: 'once', content: 'something else again' }));
    expect(dead).toMatchObject({ code: 'ID_CONFLICT' });
    const entries = await entriesOf(client, 'ids');
    expect(entries.filter(({ id }) => id === 'once').length).toBe(1);
    expect(entries.filter(({ type }) => type === 'turn-started').length).toBe(1);
  });

  it.each([
    ['malformed JSON', '{"content": ', 'MALFORMED_JSON'],
    ['an empty content', '{"content":"  "}', 'EMPTY_CONTENT'],
    ['nothing at all', '', 'EMPTY_CONTENT'],
    ['nothing visible', '\u200b\u2800\u3164', 'EMPTY_CONTENT'],
    ['no content', '{"id":"x"}', 'EMPTY_CONTENT'],
    ['an unknown recipient', '{"content":"hi","to":["nobody"]}', 'UNKNOWN_AGENT'],
    ['an unknown field', '{"content":"hi","colour":"red"}', 'UNKNOWN_FIELD'],
    ['a forged agent', '{"content":"hi","author":{"name":"Pam"}}', 'AUTHOR_IS_AN_AGENT'],
    ['bytes that are no text', Uint8Array.of(0x7b, 0xff, 0xfe), 'INVALID_UTF8'],
    ['a post that is too large as an entry', `{"content":"${'x'.repeat(64_000)}"}`, 'TOO_LARGE'],
  ])(
    'a NATS program that posts %s finds the reason at its dead-letter subject, and nothing is appended',
    async (_, body, code) => {
      const dead = await refusalOf('refused', body);
      expect(dead).toMatchObject({ code, reason: expect.stringMatching(/\w/) });
      await expect(client.request('conversation', { conversation: 'refused' })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
    },
  );

  it('a NATS program gets an error for an illegal conversation id on both ways', async () => {
    const { code, body } = await request('post', { conversation: 'a.b', publisher: 'alice', content: 'x' });
    expect(body).toMatchObject({ code: 'INVALID_NAME', hint: expect.stringContaining('letters') });
    expect(code).not.toBe('');
    const dead = await refusalOf('not$legal', 'x', '*');
    expect(dead).toMatchObject({ code: 'INVALID_NAME' });
    const command = await runCommand(['say', 'a.b', 'x', '--nats', nats.url]);
    expect([command.code, command.stderr]).toEqual([2, expect.stringContaining('conversation id')]);
  });

  it('a NATS program cannot send more than the server carries, and gets the error at once', async () => {
    expect(() => program.publish('parley.in.alice.demo', new Uint8Array(70_000))).toThrow(/MAX_PAYLOAD/);
    const command = await runCommand(['say', 'demo', '-', '--nats', nats.url], { input: 'x'.repeat(70_000) });
    expect(command.code).toBe(1);
    expect(command.stderr).toMatch(/payload|too large|bytes/i);
  });

  it('the daemon serves the NATS program as before after all of this', async () => {
    const answer = await client.post({ conversation: 'after', publisher: 'alice', content: 'still there?' });
    expect(answer).toMatchObject({ index: 0, duplicate: false });
    await followUntil(client, 'after', turnsEnded(1));
    expect(await daemon.stop()).toBe(0);
    for (const conversation of ['demo', 'ids', 'after']) {
      expect(checkLog(await project.logFile(conversation))).toEqual([]);
    }
  });
});
