import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { entriesOf, openSite, type Site, scriptedSettings } from '../support/daemon.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { ofType } from '../support/team.ts';

/**
 * Chats at `/v1` belong to their callers. The attacker has a token with the role post. It reads every log and every
 * id, and posts anywhere with any `meta`.
 */

const SECRETS = { alice: 'the-secret-of-alice', mallory: 'the-secret-of-mallory' };
const LEAD = '---\nname: Lead\ndescription: works\n---\nYou work.';

let site: Site;
let nats: TestNatsServer;
let url: string;

beforeAll(async () => {
  nats = await startNatsServer();
  const people = Object.keys(SECRETS).map((publisher) => ({
    role: 'post',
    token: `\${${publisher.toUpperCase()}}`,
    publisher,
  }));
  site = await openSite({
    nats: nats.url,
    settings: scriptedSettings({ http: { people } }),
    env: { ALICE: SECRETS.alice, MALLORY: SECRETS.mallory },
    agents: { lead: LEAD },
  });
  await writeFile(
    join(site.config, 'script.yaml'),
    JSON.stringify({ rules: [{ reply: { text: 'Noted.' } }] }),
  );
  url = String((await site.up('--http', '127.0.0.1:0')).ready.http);
});
afterAll(async () => {
  await site?.close();
  await nats?.stop();
});

type Who = keyof typeof SECRETS;
const headersOf = (who: Who, more: object = {}) => ({
  authorization: `Bearer ${SECRETS[who]}`,
  'content-type': 'application/json',
  ...more,
});
const user = (content: string) => ({ role: 'user', content });
const assistant = (content: string) => ({ role: 'assistant', content });

/** Returns the conversation. */
async function chat(who: Who, messages: readonly object[], headers: object = {}): Promise<string> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: headersOf(who, headers),
    body: JSON.stringify({ model: 'lead', messages }),
  });
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('Noted.')]);
  return response.headers.get('x-parley-conversation') ?? '';
}

async function post(who: Who, conversation: string, body: object): Promise<void> {
  const path = `${url}/api/conversations/${conversation}/messages`;
  const response = await fetch(path, { method: 'POST', headers: headersOf(who), body: JSON.stringify(body) });
  expect([response.status, await response.text()]).toEqual([201, expect.anything()]);
}

async function postsIn(conversation: string) {
  return ofType(await entriesOf(await site.client(), conversation), 'message').filter(
    ({ author }) => author.kind === 'person',
  );
}
const chatMeta = async (conversation: string) => (await postsIn(conversation)).at(-1)?.meta?.chat as object;

describe('the chat of another caller', () => {
  it('a chat is not continued in a conversation that an attacker began under a similar id', async () => {
    const own = await chat('alice', [user('Hello')]);
    await chat('mallory', [user('Hello')], { 'x-parley-conversation': own.replace(/-[^-]*$/, '-trap') });
    expect(await chat('alice', [user('Hello'), assistant('Noted.'), user('My secret')])).toBe(own);
  });

  it('a chat is not continued there even if the attacker copies the metadata of a post of the chat', async () => {
    const own = await chat('alice', [user('Good morning')]);
    const trap = own.replace(/-[^-]*$/, '-trap');
    await post('mallory', trap, { content: 'Good morning', meta: { chat: await chatMeta(own) } });
    await expect
      .poll(async () => (await entriesOf(await site.client(), trap)).at(-1)?.type)
      .toBe('turn-ended');
    expect(await chat('alice', [user('Good morning'), assistant('Noted.'), user('My secret')])).toBe(own);
  });

  it('a chat is continued in its conversation, however many newer ones an attacker began under similar ids', async () => {
    const own = await chat('alice', [user('Good day')]);
    const traps = Array.from({ length: 25 }, (_, place) => own.replace(/-[^-]*$/, `-trap${place}`));
    for (const trap of traps) await post('mallory', trap, { content: 'Good day', to: [] });
    expect(await chat('alice', [user('Good day'), assistant('Noted.'), user('My secret')])).toBe(own);
  });

  it('a chat is continued in its conversation if an attacker posts in every other chat with the same beginning', async () => {
    const own = await chat('alice', [user('Good week')]);
    const others: string[] = [];
    for (let n = 0; n < 25; n++) {
      others.push(await chat('alice', [user('Good week')]));
      const more = [user('Good week'), assistant('Noted.'), user(`Number ${n}`)];
      expect(await chat('alice', more)).toBe(others.at(-1));
    }
    for (const other of others) await post('mallory', other, { content: 'Me too' });
    expect(await chat('alice', [user('Good week'), assistant('Noted.'), user('My secret')])).toBe(own);
  });

  it('the post of an attacker is not taken for the first attempt of a request', async () => {
    const own = await chat('alice', [user('Good evening')]);
    await post('mallory', own, { content: 'Even more', meta: { chat: await chatMeta(own) } });
    await chat('alice', [user('Even more')], {
      'x-parley-conversation': own,
      'x-stainless-retry-count': '1',
    });
    const said = (await postsIn(own)).filter(({ content }) => content === 'Even more');
    expect(said.map(({ author }) => author.id).sort()).toEqual(['alice', 'mallory']);
  });

  it('a chat is not placed in a conversation whose id an attacker computed from an idempotency key', async () => {
    const own = await chat('alice', [user('Good night')]);
    const { caller } = (await chatMeta(own)) as { caller: string };
    const { digest } = await import('../../src/gateway/openai/request.ts');
    const trap = own.replace(/-[^-]*$/, `-${digest([caller, 'request-2'])}`);
    await chat('mallory', [user('Obey me')], { 'x-parley-conversation': trap });
    expect(await chat('alice', [user('Good night')], { 'idempotency-key': 'request-2' })).not.toBe(trap);
  });
});
