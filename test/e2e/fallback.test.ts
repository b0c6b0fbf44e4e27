import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Entry, EntryOf } from '../../src/client/index.ts';
import { type FakeHandler, startFakeProvider } from '../support/fake-provider.ts';
import { shared, untilTestEnds } from '../support/lifetime.ts';
import { ask, checkLog, entriesOf, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { modelAt, openProject, startProject } from '../support/project.ts';

type Reply = ReturnType<FakeHandler>;

const OVERLOADED: Reply = { status: 529, body: { error: { message: 'overloaded' } } };
const REFUSED: Reply = { status: 401, body: { error: { message: 'no such key' } } };
const price = { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000 };
const agent = (model: string) => `---\nname: ${model}\ndescription: answers\nmodel: ${model}\n---\nPERSONA`;
const answersOf = (entries: readonly Entry[]) =>
  entries.filter(
    (entry): entry is EntryOf<'message'> => entry.type === 'message' && entry.role === 'assistant',
  );

/** CANDIDATES-3: what happens for each failure of the first model. */
const CASES: Readonly<
  Record<string, { readonly reply: Reply; readonly code: string; readonly sent: number }>
> = {
  overload: { reply: OVERLOADED, code: 'PROVIDER_ERROR', sent: 3 },
  'rate-limit': {
    reply: { status: 429, body: { error: { message: 'slow down' } } },
    code: 'RATE_LIMITED',
    sent: 3,
  },
  quota: {
    reply: { status: 429, body: { error: { code: 'insufficient_quota', message: 'no credit' } } },
    code: 'QUOTA_EXHAUSTED',
    sent: 1,
  },
  outage: { reply: { drop: 'before-headers' }, code: 'NETWORK_ERROR', sent: 3 },
  silence: { reply: { hang: 'before-headers' }, code: 'TIMEOUT', sent: 3 },
  'broken-off': { reply: { drop: 'after-headers' }, code: 'NETWORK_ERROR', sent: 3 },
  'refused-key': { reply: REFUSED, code: 'UNAUTHORIZED', sent: 1 },
  'no-model': {
    reply: { status: 404, body: { error: { message: 'no model' } } },
    code: 'NOT_FOUND',
    sent: 1,
  },
};

const FINAL: Readonly<Record<string, Reply>> = {
  'a refused request': { status: 400, body: { error: { message: 'unknown field' } } },
  'a request that is too long': {
    status: 400,
    body: { error: { message: 'maximum context length is 9 tokens' } },
  },
  'an error after the first text': { text: 'as I was ', error: { message: 'overloaded' } },
  'a connection that breaks after the first text': { text: 'as I was ', drop: 'after-text' },
  'a connection that breaks after reasoning': { reasoning: 'hm ', drop: 'after-text' },
};

const slugOf = (name: string) => name.replaceAll(' ', '-');
const NAMES = [...Object.keys(CASES), ...Object.keys(FINAL).map(slugOf), 'turns'];

describe('a model with a fallback', () => {
  const replies = new Map<string, FakeHandler>();
  const second = shared(() => startFakeProvider(() => ({ text: 'from the second' })));
  const project = shared(() =>
    startProject({
      nats: {},
      model: (request, count) =>
        replies.get(request.json.model ?? '')?.(request, count) ?? { text: 'from the first' },
      settings: (url) => ({
        models: {
          default: modelAt(url),
          second: { ...modelAt(second.url), model: 'second', profile: 'openai', price },
          ...Object.fromEntries(
            NAMES.map((name) => [
              name,
              { ...modelAt(url), model: name, fallback: ['second'], firstTokenSeconds: 1 },
            ]),
          ),
        },
      }),
      agents: {
        pm: agent('default'),
        ...Object.fromEntries(NAMES.map((name) => [name, agent(name)])),
      },
    }),
  );
  const { client, provider } = project;
  const requestsFor = (model: string) => provider.requests.filter(({ json }) => json.model === model);

  it.each(Object.entries(CASES))(
    'after %s the second model answers with its own request, and the log has one attempt and one answer',
    async (name, { reply, code, sent }) => {
      replies.set(name, () => reply);
      const before = second.requests.length;
      await ask(client, name, `@${name} hello`);
      const entries = await entriesOf(client, name);
      const [attempt, ...more] = ofType(entries, 'attempt-failed');
      expect(more).toEqual([]);
      const [request] = requestsFor(name);
      const hash = (body: Buffer | undefined) =>
        createHash('sha256')
          .update(body ?? '')
          .digest('hex');
      expect(attempt).toMatchObject({ agent: name, model: name, code, next: { model: 'second' } });
      expect(attempt?.requestHash).toBe(hash(request?.body));
      expect(requestsFor(name)).toHaveLength(sent);
      expect(JSON.stringify(entries)).not.toContain('sk-test');

      const [answer, ...others] = answersOf(entries);
      expect(others).toEqual([]);
      const given = second.requests.slice(before);
      expect(given).toHaveLength(1);
      expect(answer).toMatchObject({ content: 'from the second', requestHash: hash(given[0]?.body) });
      expect(answer?.usage).toMatchObject({ inputTokens: 10, outputTokens: 2, usd: 12 });
      expect(checkLog(await project.logFile(name))).toEqual([]);

      const explain = (at: number | undefined) =>
        project.parley('explain', name, '--agent', name, '--at', String(at), '--json');
      expect((await explain(answer?.index)).json()).toMatchObject([
        { report: { model: 'second', sent: true, requestHash: answer?.requestHash } },
      ]);
      expect((await explain(attempt?.index)).json()).toMatchObject([
        { report: { model: name, sent: true, requestHash: attempt?.requestHash } },
      ]);
    },
  );

  it.each(Object.entries(FINAL))('after %s no other model is asked', async (name, reply) => {
    const conversation = slugOf(name);
    replies.set(conversation, () => reply);
    const before = second.requests.length;
    await ask(client, conversation, `@${conversation} hello`);
    const entries = await entriesOf(client, conversation);
    expect(ofType(entries, 'attempt-failed')).toEqual([]);
    expect(answersOf(entries)).toMatchObject([{ partType: 'error' }]);
    expect(second.requests.length).toBe(before);
  });
});

describe('a daemon that is killed between two attempts', () => {
  it('a daemon that is killed before the second model is called asks it after its restart, and the log has one attempt and one answer', async () => {
    const second = untilTestEnds(await startFakeProvider([{ hang: 'before-headers' }, { text: 'late' }]));
    const project = untilTestEnds(
      await openProject({
        nats: {},
        model: () => REFUSED,
        settings: (url) => ({
          models: {
            default: { ...modelAt(url), fallback: ['second'] },
            second: { ...modelAt(second.url), price },
          },
        }),
      }),
    );
    const daemon = await project.up();
    const client = await project.connect();
    await client.post({ conversation: 'c', publisher: 'alice', content: 'hello' });
    await second.waitForRequests(1);
    await daemon.kill9();

    await project.up();
    const entries = await followUntil(client, 'c', turnsEnded(1));
    expect(ofType(entries, 'attempt-failed')).toMatchObject([
      { code: 'UNAUTHORIZED', next: { model: 'second' } },
    ]);
    expect(answersOf(entries)).toMatchObject([{ content: 'late', usage: { usd: 12 } }]);
    expect(project.provider.requests).toHaveLength(1);
    expect(second.requests).toHaveLength(2);
    expect(second.requests[1]?.body.equals(second.requests[0]?.body ?? Buffer.alloc(0))).toBe(true);
    const shown = await project.parley('show', 'c', '--json');
    expect(shown.json().map(({ type }: Entry) => type)).toContain('attempt-failed');
    expect(checkLog(await project.logFile('c'))).toEqual([]);
  });
});
