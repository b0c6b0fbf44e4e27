import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { sha256Of } from '../../src/kernel/index.ts';
import { shared } from '../support/lifetime.ts';
import { NOTING, sharedProject } from '../support/project.ts';
import { startGuarded } from '../support/server-users.ts';

/** Alice uses the verbs that she has beside `post` as fast as she can: short requests with long answers, or entries of a log. */

const USERS = {
  daemon: { role: 'daemon' },
  ops: { role: 'operator' },
  alice: { role: 'publisher', conversations: ['demo'] },
  bob: { role: 'publisher', conversations: ['demo'] },
};
/** More than a publisher may post in a minute by the shipped limits: 1,200. */
const RATINGS = 3_000;
const DOWNLOADS = 4_000;

const project = shared(() => startGuarded(NOTING, USERS));
/** Over HTTP, with the role `post`. */
const TOKEN = 'post-token-of-alice';
const overHttp = sharedProject({
  ...NOTING,
  settings: {
    publishers: { alice: { postsPerMinute: 20 } },
    http: { people: [{ role: 'post', token: `\${ALICE}`, publisher: 'alice' }] },
  },
  env: { ALICE: TOKEN },
  http: true,
});

async function memory(): Promise<number> {
  const status = await readFile(`/proc/${project.daemon.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1_024;
}

async function answerTo(user: string, verb: string, body: object): Promise<Record<string, unknown>> {
  const connection = await project.connectAs(user);
  return (await connection.request(verb, JSON.stringify(body), { timeout: 5_000 })).json();
}

/** Repeats a request without waiting for answers, and posts as bob meanwhile. Returns how many answers had each code. */
async function flood(
  subject: string,
  count: number,
  body: (n: number) => object,
): Promise<Map<string, number>> {
  const alice = await project.connectAs('alice');
  const codes = new Map<string, number>();
  let answered = 0;
  alice.subscribe('_INBOX.alice.flood', {
    callback: (_error, message) => {
      const { code = 'none' } = message.json<{ code?: string }>();
      codes.set(code, (codes.get(code) ?? 0) + 1);
      answered++;
    },
  });
  for (let n = 0; n < count; n++) {
    alice.publish(subject, JSON.stringify(body(n)), { reply: '_INBOX.alice.flood' });
    if (n % 1_000 === 0) await alice.flush();
  }
  await alice.flush();
  expect(await answerTo('bob', 'parley.api.post.bob.demo', { content: 'Hello' })).toMatchObject({
    conversation: 'demo',
  });
  await expect.poll(() => answered, { timeout: 30_000 }).toBe(count);
  return codes;
}

it('a publisher that reads a file as fast as it can neither fills the memory of the daemon nor keeps others from posting (SERVICE-5)', async () => {
  const bytes = Buffer.alloc(500_000, 'x');
  const sha256 = sha256Of(bytes);
  const piece = {
    upload: 'u',
    offset: 0,
    data: bytes.toString('base64'),
    last: { sha256, size: bytes.length },
  };
  expect(await answerTo('alice', 'parley.api.upload.alice', piece)).toHaveProperty('file');
  await answerTo('alice', 'parley.api.post.alice.demo', {
    content: 'Look',
    parts: [{ type: 'file', sha256 }],
  });
  const before = await memory();
  const codes = await flood('parley.api.blob.alice.demo', DOWNLOADS, () => ({ sha256 }));
  expect((await memory()) - before).toBeLessThan(500_000_000);
  expect([...codes.keys()].sort()).toEqual(['RATE_LIMITED', 'none']);
  const size = { size: bytes.length };
  expect(await answerTo('alice', 'parley.api.blob.alice.demo', { sha256 })).toMatchObject(size);
}, 90_000);

it('a publisher that rates an answer as fast as it can adds no more entries than it may post', async () => {
  await answerTo('alice', 'parley.api.post.alice.demo', { content: 'Rate me', id: 'rate-me' });
  const ops = await project.clientOf('ops');
  const log = () => ops.request('entries', { conversation: 'demo', from: 0, limit: 1_000 });
  const answer = () =>
    log().then(({ entries }) => entries.find((one) => one.type === 'message' && one.role === 'assistant'));
  await expect.poll(answer).toBeDefined();
  const index = (await answer())?.index;
  const { length } = await log();
  const codes = await flood('parley.api.feedback.alice.demo', RATINGS, (n) => ({
    index,
    value: n % 2 === 0 ? 'up' : 'down',
    author: { name: `person ${n}` },
  }));
  expect(codes.get('RATE_LIMITED')).toBeGreaterThan(RATINGS / 2);
  expect((await log()).length - length).toBeLessThan(1_300);
}, 90_000);

it('a publisher copies no more conversations than it may post, though each of its requests continues an earlier response', async () => {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
  const ask = async (input: string, previous?: string) => {
    const body = JSON.stringify({ model: 'lead', input, previous_response_id: previous });
    const answer = await fetch(`${overHttp.http}/v1/responses`, { method: 'POST', headers, body });
    return { ...((await answer.json()) as { id?: string }), status: answer.status };
  };
  const { id } = await ask('Hello');
  expect(await ask('And then?', id)).toMatchObject({ status: 200 });
  const statuses = [];
  for (let n = 0; n < 60; n++) statuses.push((await ask(`Or ${n}?`, id)).status);
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
  const listed = await fetch(`${overHttp.http}/api/conversations`, { headers });
  const { conversations } = (await listed.json()) as { conversations: object[] };
  expect(conversations.length).toBeLessThan(30);
});
