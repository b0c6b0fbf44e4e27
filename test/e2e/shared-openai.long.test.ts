import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { posting } from '../support/http.ts';
import { entriesOf, postedIds, said } from '../support/log.ts';
import type { RunningDaemon } from '../support/project.ts';

type Message = { role: string; content: string };
const user = (content: string): Message => ({ role: 'user', content });
const assistant = (content: string): Message => ({ role: 'assistant', content });
/** An answer that a client brings is a quotation of that client. */
const QUOTED = 'Quoted by openai, an answer:\n> elsewhere';

/** Several daemons, each with a gateway: the load balancer of a client may send a request to both. */
describe('identical requests at `/v1` of two daemons at the same time', () => {
  let fleet: Fleet;
  let addresses: string[];

  beforeAll(async () => {
    // The answer comes after both requests, as a repeat after it would be another message.
    fleet = await startFleet({ count: 0, handler: () => ({ text: 'noted', delayMs: 200 }) });
    const daemons: RunningDaemon[] = [];
    for (let n = 0; n < 2; n++) daemons.push(await fleet.add({}, '--http', '127.0.0.1:0'));
    addresses = daemons.map(({ ready }) => String(ready.http));
  });
  afterAll(() => fleet?.close());

  async function chat(http: string, messages: Message[], headers: Record<string, string> = {}) {
    const answer = await fetch(
      `${http}/v1/chat/completions`,
      posting({ model: 'parley', messages }, headers),
    );
    const body = (await answer.json()) as { choices?: { message: Message }[]; error?: object };
    expect(body.error).toBeUndefined();
    const conversation = String(answer.headers.get('x-parley-conversation'));
    return { conversation, text: body.choices?.[0]?.message.content };
  }
  const onBoth = (messages: Message[], headers?: Record<string, string>) =>
    Promise.all(addresses.map((http) => chat(http, messages, headers)));
  const placedOnce = async (answers: readonly { conversation: string; text: string | undefined }[]) => {
    expect(answers[1]).toEqual(answers[0]);
    const entries = await entriesOf(fleet.client, String(answers[0]?.conversation));
    expect(new Set(postedIds(entries)).size).toBe(postedIds(entries).length);
    return said(entries);
  };

  it('identical requests that continue a chat are one message', async () => {
    for (let n = 0; n < 10; n++) {
      const begun = await chat(String(addresses[n % 2]), [user(`chat ${n}`)]);
      const answers = await onBoth([user(`chat ${n}`), assistant('noted'), user('on')]);
      expect(answers[0]?.conversation).toBe(begun.conversation);
      expect(await placedOnce(answers)).toEqual([`chat ${n}`, 'noted', 'on', 'noted']);
    }
  });

  it('identical requests with a new history are one conversation with one message', async () => {
    for (let n = 0; n < 10; n++) {
      const answers = await onBoth([user(`brought ${n}`), assistant('elsewhere'), user('on')]);
      expect(await placedOnce(answers)).toEqual([`brought ${n}`, QUOTED, 'on', 'noted']);
    }
  });

  it('identical requests with the same idempotency key are one conversation with one message', async () => {
    for (let n = 0; n < 10; n++) {
      const answers = await onBoth([user(`keyed ${n}`)], { 'idempotency-key': `key ${n}` });
      expect(await placedOnce(answers)).toEqual([`keyed ${n}`, 'noted']);
    }
  });

  it('identical requests that are sent again after the answer are one further message', async () => {
    const messages = [user('again'), assistant('elsewhere'), user('on')];
    const [first] = await onBoth(messages);
    const second = await onBoth(messages);
    expect(await placedOnce(second)).toEqual(['again', QUOTED, 'on', 'noted']);
    expect(second[0]?.conversation).not.toBe(first?.conversation);
  });
});
