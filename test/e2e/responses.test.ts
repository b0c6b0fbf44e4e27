import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { anthropicApi } from '../support/anthropic-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { ask, checkLog, entriesOf, ofType, outcomesOf } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject, sharedProject, startProject } from '../support/project.ts';
import { type Answer, type Answering, answering, type ResponsesBody } from '../support/responses-provider.ts';

const GPT = { provider: 'responses', apiKey: 'sk-test', model: 'gpt-5', reasoningEffort: 'high' };
const AGENTS = { pm: `---\nname: Pam\ntools: [set_phase]\n---\n${'WORK with care. '.repeat(400)}` };

/** Reasons, says something and calls a tool. */
const PLAN: Answer = {
  output: [
    { reasoning: ['They want a plan.', 'So the phase. 👋🏽'] },
    { text: 'First the phase.', phase: 'commentary' },
    { call: 'set_phase', arguments: '{"phase":"plan","reason":"to plan"}' },
  ],
};
const DONE: Answer = { output: [{ reasoning: [] }, { text: 'Here it is.', phase: 'final_answer' }] };

const hasResult = ({ input }: ResponsesBody) => input.at(-1)?.type === 'function_call_output';
const plans: Answering = (body) => (hasResult(body) ? DONE : PLAN);
const bodyOf = (request: { readonly json: unknown } | undefined) =>
  request?.json as ResponsesBody | undefined;
const typesIn = (body: ResponsesBody | undefined) =>
  body?.input.map((item) => ('role' in item ? item.role : item.type));

describe('a daemon whose model speaks the Responses API', () => {
  let answer: Answering = plans;
  const refusals: string[] = [];
  const api = answering((body, count) => answer(body, count), refusals);
  const project = sharedProject({
    settings: (baseURL) => ({
      models: { default: { ...GPT, baseURL }, other: { provider: 'openai', apiKey: 'sk-test', baseURL } },
      defaultAgent: 'pm',
    }),
    model: (request, count) =>
      request.path.endsWith('/chat/completions') ? { text: 'As I see it.' } : api(request, count),
    agents: AGENTS,
  });
  const { client, provider } = project;

  it('a post is answered by a stream of the Responses API, with a tool and reasoning, and the bytes are explained', async () => {
    answer = plans;
    const before = provider.requests.length;
    const said = await project.parley('say', 'plans', 'plan it', '--as', 'alice', '--wait');
    expect(said.stdout).toContain('Here it is.');
    await ask(client, 'plans', 'and once more');
    expect(refusals).toEqual([]);
    const sent = provider.requests.slice(before);
    expect(sent[0]?.headers.authorization).toBe('Bearer sk-test');
    const [first, second, third] = sent.map(bodyOf);
    expect(first).toMatchObject({ store: false, reasoning: { effort: 'high', summary: 'auto' } });
    expect(first?.instructions).toContain('WORK');
    const step = ['user', 'reasoning', 'assistant', 'function_call', 'function_call_output'];
    expect(typesIn(second)).toEqual(step);
    expect(second?.input.slice(1, 4)).toMatchObject([
      { summary: [{ text: 'They want a plan.' }, { text: 'So the phase. 👋🏽' }] },
      { phase: 'commentary', content: [{ text: 'First the phase.' }] },
      { name: 'set_phase', arguments: '{"phase":"plan","reason":"to plan"}' },
    ]);
    expect(third?.input.slice(0, 5)).toEqual(second?.input);
    expect(typesIn(third)?.slice(5, 7)).toEqual(['reasoning', 'assistant']);

    const entries = await entriesOf(client, 'plans');
    const answers = ofType(entries, 'message').filter(({ role }) => role === 'assistant');
    const hashes = sent.map(({ body }) => createHash('sha256').update(body).digest('hex'));
    expect(answers.map(({ requestHash }) => requestHash)).toEqual(hashes);
    expect(answers[0]).toMatchObject({
      reasoning: 'They want a plan.\n\nSo the phase. 👋🏽',
      usage: { outputTokens: 20, reasoningTokens: 12 },
    });
    for (const { usage } of answers.slice(1))
      expect(usage?.cachedInputTokens).toBeGreaterThan(0.8 * (usage?.inputTokens ?? 0));
    const explain = ['explain', 'plans', '--agent', 'pm', '--at', `${answers.at(-1)?.index}`, '--json'];
    const [{ report }] = (await project.parley(...explain, '--config', project.config)).json();
    expect(report).toMatchObject({ sent: true, fault: null }); // the recorded hash is that of the explained bytes
    expect(checkLog(await project.logFile('plans'))).toEqual([]);
  });

  it('a conversation that continues with a model of another protocol, and then with the first, sends each one only what it understands', async () => {
    answer = plans;
    const reload = async (model: string) => {
      await writeFile(
        join(project.config, 'agents', 'pm.md'),
        AGENTS.pm.replace('name: Pam', `name: Pam\nmodel: ${model}`),
      );
      expect((await project.parley('reload')).code).toBe(0);
    };
    await ask(client, 'moves', 'plan it');
    await reload('other');
    const before = provider.requests.length;
    await ask(client, 'moves', 'what do you say?');
    await reload('default');
    await ask(client, 'moves', 'plan it again');
    const [other, back] = provider.requests.slice(before);
    expect(other?.path).toContain('/chat/completions');
    expect(other?.body.toString()).not.toMatch(/enc:|rs_|They want/);
    expect(back?.path).toContain('/responses');
    expect(typesIn(bodyOf(back))?.slice(0, 5)).toContain('reasoning');
    expect(refusals).toEqual([]);
  });

  it('a conversation whose reasoning the provider refuses continues without it', async () => {
    const file = join(project.config, 'parley.yaml');
    const before = await readFile(file, 'utf8');
    const reload = async (text: string) => {
      await writeFile(file, text);
      expect((await project.parley('reload')).code).toBe(0);
    };
    const ofOther = {
      ...{ type: 'invalid_request_error', code: 'invalid_encrypted_content' },
      message: 'The encrypted content for item rs_1 could not be verified.',
    };
    answer = plans;
    await ask(client, 'keys', 'plan it');
    answer = (body) =>
      JSON.stringify(body).includes('enc:') ? { reply: { status: 400, body: { error: ofOther } } } : DONE;
    const failed = await ask(client, 'keys', 'go on');
    expect(JSON.stringify(failed)).toContain('set sendReasoning: never');
    await reload(before.replace('"reasoningEffort"', '"sendReasoning":"never","reasoningEffort"'));
    const entries = await ask(client, 'keys', 'go on');
    expect(outcomesOf(entries, 'pm')).toEqual(['completed', 'failed', 'completed']);
    expect(refusals).toEqual([]);
    await reload(before);
  });

  it.each<[string, Answer]>([
    ['a rate limit', { reply: { status: 429, headers: { 'retry-after': '0' } } }],
    ['an error of the provider', { reply: { status: 500 } }],
    ['an answer that failed', { failed: 'server_error' }],
    ['an error in place of the first event', { error: 'server_error' }],
  ])('a call is repeated after %s', async (what, failure) => {
    let count = 0;
    answer = () => (count++ === 0 ? failure : DONE);
    const entries = await ask(client, what.replaceAll(' ', '-'), 'go');
    expect(outcomesOf(entries, 'pm')).toEqual(['completed']);
    expect(count).toBe(2);
  });

  const errorReply = (status: number, code: string) => ({
    reply: {
      status,
      body: { error: { message: `It failed: ${code}`, type: 'invalid_request_error', code } },
    },
  });
  it.each<[string, Answer, string]>([
    ['401', errorReply(401, 'invalid_api_key'), 'UNAUTHORIZED'],
    ['404', errorReply(404, 'model_not_found'), 'NOT_FOUND'],
    ['429', errorReply(429, 'insufficient_quota'), 'QUOTA_EXHAUSTED'],
    ['400', errorReply(400, 'context_length_exceeded'), 'CONTEXT_TOO_LONG'],
    ['unverified', errorReply(400, 'invalid_encrypted_content'), 'BAD_REQUEST'],
    ['prompt', { failed: 'invalid_prompt' }, 'BAD_REQUEST'],
    ['cut', { output: [{ reasoning: ['Hm.'] }], incomplete: 'max_output_tokens' }, 'OUTPUT_LIMIT'],
  ])('a turn fails after %s, with its code', async (what, failure, code) => {
    answer = () => failure;
    const entries = await ask(client, `fails-${what}`, 'go');
    expect(outcomesOf(entries, 'pm')).toEqual(['failed']);
    expect(JSON.stringify(entries)).toContain(code);
  });

  it('an incomplete answer and a refusal are shown as what they are, and are accepted in the next request', async () => {
    answer = () => ({ output: [{ reasoning: [] }, { text: 'Half of' }], incomplete: 'max_output_tokens' });
    await ask(client, 'ends', 'go');
    answer = () => ({ output: [{ reasoning: [] }, { refusal: 'I will not.' }] });
    await ask(client, 'ends', 'continue');
    answer = () => DONE;
    const entries = await ask(client, 'ends', 'why?');
    const answers = ofType(entries, 'message').filter(({ role }) => role === 'assistant');
    expect(answers.map(({ finishReason }) => finishReason)).toEqual(['length', 'refusal', 'stop']);
    expect(refusals).toEqual([]);
  });
});

describe('a daemon that is killed in a tool loop of the Responses API', () => {
  itLong('the same bytes are sent again, and the provider accepts the reasoning in them', async () => {
    const refusals: string[] = [];
    let isHanging = true;
    const model = answering((body) => {
      if (!hasResult(body)) return PLAN;
      return isHanging ? { reply: { hang: 'after-headers' } } : DONE;
    }, refusals);
    const project = untilTestEnds(
      await openProject({
        ...{ nats: {}, model, agents: AGENTS },
        settings: (baseURL) => ({ models: { default: { ...GPT, baseURL } } }),
      }),
    );
    const first = await project.up();
    const client = await project.connect();
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'plan it' });
    await project.provider.waitForRequests(2);
    await first.kill9();
    await project.provider.waitForIdle();
    isHanging = false;
    await project.up();
    const entries = await ask(client, 'demo', 'thank you');
    expect(refusals).toEqual([]);
    const [, second, third] = project.provider.requests;
    expect(third?.body.equals(second?.body ?? Buffer.alloc(0))).toBe(true);
    expect(new Set(outcomesOf(entries, 'pm'))).toEqual(new Set(['completed']));
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });
});

describe('a tool loop of the Responses API that Claude continues', () => {
  itLong(
    'each provider accepts what the other one began, and gets nothing that only the other one understands',
    async () => {
      const refusals: string[] = [];
      let isOut = true;
      const gpt = answering((body) => {
        if (!hasResult(body)) return PLAN;
        return isOut ? { reply: { status: 401 } } : DONE;
      }, refusals);
      const claude = anthropicApi([
        {
          blocks: [
            { type: 'thinking', thinking: 'My turn.' },
            { type: 'text', text: 'I go on.' },
          ],
        },
      ]);
      const project = untilTestEnds(
        await startProject({
          ...{ nats: {}, agents: AGENTS },
          model: (request, count) =>
            request.path.endsWith('/messages') ? claude.answer(request, count) : gpt(request, count),
          settings: (baseURL) => ({
            models: {
              default: { ...GPT, baseURL, contextTokens: 64_000, fallback: ['claude'] },
              claude: {
                provider: 'anthropic',
                apiKey: 'k',
                baseURL,
                maxOutputTokens: 8_000,
                reasoningTokens: 2_000,
              },
            },
          }),
        }),
      );
      const { client, provider } = project;
      const entries = await ask(client, 'demo', 'plan it');
      expect(outcomesOf(entries, 'pm')).toEqual(['completed']);
      const continued = provider.requests.at(-1);
      expect(continued?.path).toContain('/messages');
      expect(continued?.json).toMatchObject({ thinking: { type: 'disabled' } });
      expect(continued?.body.toString()).not.toMatch(/enc:|rs_|They want/);
      isOut = false;
      await project.daemon.stop(); // a daemon does not ask a refused key again for a while
      await project.up();
      expect(outcomesOf(await ask(client, 'demo', 'plan it again'), 'pm')).toEqual([
        'completed',
        'completed',
      ]);
      const last = provider.requests.at(-1);
      expect(typesIn(bodyOf(last))?.filter((type) => type === 'reasoning').length).toBe(2);
      expect(last?.body.toString()).not.toContain('My turn.');
      expect([refusals, claude.refusals]).toEqual([[], []]);
      expect(checkLog(await project.logFile('demo'))).toEqual([]);
    },
  );
});
