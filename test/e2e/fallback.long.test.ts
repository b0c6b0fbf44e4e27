import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import { type AnthropicReply, anthropicApi } from '../support/anthropic-provider.ts';
import { type FakeHandler, startFakeProvider } from '../support/fake-provider.ts';
import { ownerOf, startFleet } from '../support/fleet.ts';
import { shared, untilTestEnds } from '../support/lifetime.ts';
import { ask, checkLog, claimants, entriesOf, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { modelAt, openProject, startProject } from '../support/project.ts';

type Reply = ReturnType<FakeHandler>;

const OVERLOADED: Reply = { status: 529, body: { error: { message: 'overloaded' } } };
const REFUSED: Reply = { status: 401, body: { error: { message: 'no such key' } } };
const price = { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000 };
const agent = (model: string) => `---\nname: ${model}\ndescription: answers\nmodel: ${model}\n---\nPERSONA`;
const answersOf = (entries: readonly Entry[]) =>
  ofType(entries, 'message').filter(({ role }) => role === 'assistant');

/** The first model refused, and the second one gave this answer. */
function expectOneAttempt(entries: readonly Entry[], content: string): void {
  const attempts = [{ code: 'UNAUTHORIZED', next: { model: 'second' } }];
  expect(ofType(entries, 'attempt-failed')).toMatchObject(attempts);
  expect(answersOf(entries)).toMatchObject([{ content, usage: { usd: 12 } }]);
}

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
  let secondReply = (): Reply => ({ text: 'from the second' });
  const second = shared(() => startFakeProvider(() => secondReply()));
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

  it('a turn stays with the model that answered, and the next turn begins with its own; what-if compares the two', async () => {
    replies.set('turns', () => OVERLOADED);
    let asked = 0;
    const list = [{ name: 'fs_list', arguments: '{"path":"@project/"}' }];
    secondReply = () => (asked++ === 0 ? { text: 'Looking.', toolCalls: list } : { text: 'from the second' });
    const before = requestsFor('turns').length;
    await ask(client, 'turns', '@turns hello');
    const entries = await entriesOf(client, 'turns');
    expect(ofType(entries, 'attempt-failed')).toHaveLength(1);
    expect(answersOf(entries).map(({ content }) => content)).toEqual(['Looking.', 'from the second']);
    expect(requestsFor('turns').length - before).toBe(3);
    expect(second.requests.at(-1)?.json.messages?.at(-1)?.role).toBe('tool');

    replies.set('turns', () => ({ text: 'from the first' }));
    const at = String(answersOf(entries).at(-1)?.index);
    const compared = await project.parley(
      'what-if',
      'turns',
      '--agent',
      'turns',
      '--at',
      at,
      '--model',
      'turns',
      '--json',
    );
    const [{ results }] = compared.json();
    expect(results).toMatchObject([
      { control: [{ content: 'from the second', requestHash: answersOf(entries).at(0)?.requestHash }] },
    ]);
    expect(results[0].changed).toMatchObject([{ content: 'from the first' }]);
    expect(checkLog(await project.logFile('turns'))).toEqual([]);
  });

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

describe('a model with several keys', () => {
  const KEYS: Readonly<Record<string, Reply>> = {
    'sk-refused': REFUSED,
    'sk-empty': { status: 402, body: { error: { message: 'no credit' } } },
    'sk-good': { text: 'with the third key' },
  };
  const project = shared(() =>
    startProject({
      nats: {},
      http: true,
      model: ({ headers }) => KEYS[headers.authorization?.replace('Bearer ', '') ?? ''] ?? { status: 500 },
      settings: (url) => ({
        models: {
          default: {
            baseURL: url,
            model: 'fake-model',
            apiKeys: Object.keys(KEYS),
            fallback: ['other'],
            price,
          },
          other: { baseURL: url, model: 'fake-model', apiKey: 'sk-other' },
        },
      }),
    }),
  );
  const { client, provider } = project;

  it('a model asks with its next key, the same bytes; the log names the keys by their place and contains none', async () => {
    await ask(client, 'keys', 'hello');
    const entries = await entriesOf(client, 'keys');
    expect(ofType(entries, 'attempt-failed')).toMatchObject([
      { model: 'default', key: 1, code: 'UNAUTHORIZED', next: { model: 'default', key: 2 } },
      { model: 'default', key: 2, code: 'QUOTA_EXHAUSTED', next: { model: 'default', key: 3 } },
    ]);
    const [first, ...more] = provider.requests.map(({ body }) => body.toString());
    expect(more).toEqual([first, first]);
    expect(answersOf(entries)).toMatchObject([{ content: 'with the third key', usage: { usd: 12 } }]);
    expect(await project.logFile('keys')).not.toMatch(/sk-/);
  });

  it('what failed lately is not called again while another key is left, and status, show and metrics name it', async () => {
    const before = provider.requests.length;
    await ask(client, 'again', 'hello');
    expect(provider.requests.slice(before).map(({ headers }) => headers.authorization)).toEqual([
      'Bearer sk-good',
    ]);
    const attempts = ofType(await entriesOf(client, 'again'), 'attempt-failed');
    expect(attempts).toMatchObject([
      { key: 1, duration: 0 },
      { key: 2, duration: 0 },
    ]);
    expect(attempts.map(({ requestHash }) => requestHash)).toEqual([undefined, undefined]);
    expect(checkLog(await project.logFile('again'))).toEqual([]);

    const status = (await project.parley('status')).stdout;
    expect(status).toMatch(/^model default, key 1: left out until .* \(UNAUTHORIZED, 1 failure in a row\)$/m);
    expect(status).toMatch(
      /^model default, key 2: left out until .* \(QUOTA_EXHAUSTED, 1 failure in a row\)$/m,
    );
    const [first, second] = ['keys', 'again'].map((name) => project.parley('show', name));
    expect((await first)?.stdout).toContain(
      'default with key 1 refused the key (UNAUTHORIZED); key 2 is used instead',
    );
    expect((await second)?.stdout).toContain(
      'default with key 2 is left out after a recent failure (QUOTA_EXHAUSTED); key 3 is used instead',
    );
    const metrics = await (await fetch(`${project.http}/metrics`)).text();
    expect(metrics).toContain(
      'parley_model_attempts_failed_total{model="default",key="1",code="UNAUTHORIZED"} 2',
    );
  });
});

describe('a fallback of another dialect', () => {
  it('a model that fails in a tool loop of Claude is followed by one of chat completions, and the next turn is of Claude again', async () => {
    const claude: AnthropicReply[] = [
      {
        blocks: [
          { type: 'thinking', thinking: 'They want a plan.' },
          { type: 'text', text: 'First the phase.' },
          { type: 'tool_use', name: 'set_phase', input: { phase: 'plan', reason: 'to plan' } },
        ],
      },
      { error: 'authentication_error' },
      { text: 'of Claude again' },
    ];
    const api = anthropicApi(claude);
    const second = untilTestEnds(await startFakeProvider([{ text: 'of the other one' }]));
    const project = untilTestEnds(
      await openProject({
        nats: {},
        model: api.answer,
        settings: (url) => ({
          models: {
            default: {
              ...{ provider: 'anthropic', baseURL: url, apiKey: 'sk-test', model: 'claude-haiku-4-5' },
              ...{
                maxOutputTokens: 8_000,
                reasoningTokens: 2_000,
                contextTokens: 100_000,
                fallback: ['second'],
              },
            },
            second: modelAt(second.url),
          },
        }),
        agents: { pm: '---\nname: Pam\ntools: [set_phase]\n---\nPERSONA' },
      }),
    );
    await project.up();
    const client = await project.connect();
    await ask(client, 'c', 'plan it');
    expect(ofType(await entriesOf(client, 'c'), 'attempt-failed')).toMatchObject([{ code: 'UNAUTHORIZED' }]);
    const sent = second.requests[0]?.json.messages ?? [];
    expect(sent.slice(1).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    expect(JSON.stringify(sent)).not.toMatch(/They want a plan|signature/);

    expect((await project.parley('reload')).code).toBe(0); // forgets the failure: otherwise the fallback is asked
    await ask(client, 'c', 'and now?');
    const entries = await entriesOf(client, 'c');
    expect(answersOf(entries).map(({ content }) => content)).toEqual([
      'First the phase.',
      'of the other one',
      'of Claude again',
    ]);
    expect(api.refusals).toEqual([]);
    for (const { index } of answersOf(entries)) {
      const explained = await project.parley(
        'explain',
        'c',
        '--agent',
        'pm',
        '--at',
        String(index),
        '--json',
      );
      expect(explained.json()).toMatchObject([{ report: { sent: true, fault: null } }]);
    }
    expect(checkLog(await project.logFile('c'))).toEqual([]);
  });
});

/** The first model refuses; the second one is there. */
async function refusedFirst(secondUrl: string, env: Record<string, string> = {}) {
  const project = await openProject({
    nats: {},
    env,
    model: () => REFUSED,
    settings: (url) => ({
      models: {
        default: { ...modelAt(url), fallback: ['second'] },
        second: { ...modelAt(secondUrl), price },
      },
    }),
  });
  return untilTestEnds(project);
}

describe('a daemon that is killed between two attempts', () => {
  it('a daemon that is killed before the second model is called asks it after its restart, and the log has one attempt and one answer', async () => {
    const second = untilTestEnds(await startFakeProvider([{ hang: 'before-headers' }, { text: 'late' }]));
    const project = await refusedFirst(second.url);
    const daemon = await project.up();
    const client = await project.connect();
    await client.post({ conversation: 'c', publisher: 'alice', content: 'hello' });
    await second.waitForRequests(1);
    await daemon.kill9();

    const restarted = await project.up();
    const entries = await followUntil(client, 'c', turnsEnded(1));
    expectOneAttempt(entries, 'late');
    expect(project.provider.requests).toHaveLength(1);
    expect(second.requests).toHaveLength(2);
    expect(second.requests[1]?.body.equals(second.requests[0]?.body ?? Buffer.alloc(0))).toBe(true);
    const shown = await project.parley('show', 'c', '--json');
    expect(shown.json().map(({ type }: Entry) => type)).toContain('attempt-failed');
    expect(checkLog(await project.logFile('c'))).toEqual([]);
    expect(await restarted.stop()).toBe(0);
    const checked = await project.parley('fsck', '--views', '--json');
    expect([checked.code, checked.json()]).toEqual([0, [{ conversation: 'c', findings: [] }]]);
  });

  it.each([
    { point: 'before-model-call:2', first: 1 },
    { point: 'after-model-call:1', first: 2 },
    { point: 'before-append:2', first: 2 },
    { point: 'after-append:2', first: 1 },
  ])(
    'a daemon that is killed at $point has one attempt and one answer, and asks the first model $first times',
    async ({ point, first }) => {
      const env: Record<string, string> = { PARLEY_CRASH_POINTS: point };
      const second = untilTestEnds(await startFakeProvider([{ text: 'once' }]));
      const project = await refusedFirst(second.url, env);
      const daemon = await project.up('--allow-crash-points');
      const client = await project.connect();
      const posting = client
        .post({ conversation: 'c', publisher: 'alice', content: 'hello' })
        .catch(() => null);
      expect(await daemon.exited).toBeNull();
      delete env.PARLEY_CRASH_POINTS;
      await posting;
      await project.up();
      const entries = await followUntil(client, 'c', turnsEnded(1));
      expectOneAttempt(entries, 'once');
      expect([project.provider.requests.length, second.requests.length]).toEqual([first, 1]);
      expect(checkLog(await project.logFile('c'))).toEqual([]);
    },
  );
});

describe('daemons that share the work', () => {
  it('a daemon that is killed while it asks the second model is followed by one that asks the second model again, and not the first', async () => {
    const first = untilTestEnds(await startFakeProvider(() => REFUSED));
    const second = untilTestEnds(await startFakeProvider([{ hang: 'before-headers' }, { text: 'late' }]));
    const models = {
      default: { ...modelAt(first.url), fallback: ['second'] },
      second: { ...modelAt(second.url), price },
    };
    const fleet = untilTestEnds(await startFleet({ count: 2, settings: { models } }));
    await fleet.publish('c', 'hello');
    await second.waitForRequests(1);
    await (await ownerOf(fleet, 'c')).kill9();

    const entries = await followUntil(fleet.client, 'c', turnsEnded(1));
    expectOneAttempt(entries, 'late');
    expect(claimants(entries)).toHaveLength(2);
    expect([first.requests.length, second.requests.length]).toEqual([1, 2]);
    expect(second.requests[1]?.body.equals(second.requests[0]?.body ?? Buffer.alloc(0))).toBe(true);
    expect(checkLaws(entries)).toEqual([]);
  });
});
