import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModelDelta, WireMessage } from '../../../src/agents/model-port.ts';
import { createScriptedModel } from '../../../src/models/index.ts';
import { choose } from '../../../src/models/scripted/model.ts';
import { parseScript } from '../../../src/models/scripted/script.ts';
import { ask, replyTo, requestOf, say } from './scripted-support.ts';

const script = (text: string) => parseScript('script.yaml', text);
const user = (content: string): WireMessage => ({ role: 'user', content });
const own = (content: string): WireMessage => ({ role: 'assistant', content });
const system = (content: string): WireMessage => ({ role: 'system', content });

describe('a rule of a script', () => {
  it('the first rule whose conditions match answers', async () => {
    const rules = script(`rules:
      - { when: { agent: pm, last: plan }, reply: { text: A } }
      - { when: { last: '/PLAN (\\w+)/i' }, reply: { text: 'B {{1}} {{0}}' } }
      - reply: { text: 'C {{agent}} {{conversation}} {{last}}' }`);
    expect(await say(rules, [user('a plan')], 'pm')).toBe('A');
    expect(await say(rules, [user('a plan')], 'dev')).toBe('C dev demo a plan');
    expect(await say(rules, [user('Plan things')], 'dev')).toBe('B things Plan things');
  });

  it('a rule tests only the last message, without the name that the view put before it', async () => {
    const rules = script(
      `rules: [{ when: { last: '/^go$/' }, reply: { text: A } }, { reply: { text: '{{last}}' } }]`,
    );
    expect(await say(rules, [user('go')])).toBe('A');
    expect(await say(rules, [user('[Alice]: go')])).toBe('A');
    expect(await say(rules, [system('[Project Manager]: go')])).toBe('A');
    expect(await say(rules, [user('go'), user('[Bob]: [x] stay')])).toBe('[x] stay');
  });

  it('a rule may test the tool of the last result, and the mode', async () => {
    const rules = script(`rules:
      - { when: { tool: recall, last: found }, reply: { text: after recall } }
      - { when: { mode: chat }, reply: { text: chatting } }
      - { reply: { tool_calls: [{ name: recall, arguments: { query: 'about {{last}}', deep: ['{{agent}}', 1] } }] } }`);
    const request = [system('You.\nMODE\n- active: agent\n- note: x'), user('bees')];
    const { outcome, deltas } = await ask(rules, requestOf(request));
    const called = '{"query":"about bees","deep":["dev",1]}';
    expect(outcome).toMatchObject({
      kind: 'answered',
      answer: {
        content: null,
        toolCalls: [{ id: 'call_0', name: 'recall', arguments: called }],
        finishReason: 'tool_calls',
      },
    });
    expect(deltas).toEqual([{ type: 'tool_call_delta', position: 0, name: 'recall', delta: called }]);
    const toolCalls = [
      { id: 'c3_0', type: 'function', function: { name: 'recall', arguments: called } },
    ] as const;
    const after: WireMessage[] = [
      ...request,
      { role: 'assistant', content: null, tool_calls: toolCalls },
      { role: 'tool', tool_call_id: 'c3_0', content: 'found 2' },
    ];
    expect(await say(rules, after)).toBe('after recall');
    expect(await say(rules, [system('MODE\n- active: chat\n- note: y'), user('x')])).toBe('chatting');
  });

  it('a rule matches the same again, whatever the flags of its expression', async () => {
    const rules = script(`rules: [{ when: { last: '/a/gy' }, reply: { text: A } }, { reply: { text: B } }]`);
    expect(await say(rules, [user('a')])).toBe('A');
    expect(await say(rules, [user('a')])).toBe('A');
  });

  it('a rule whose expression backtracks on the text of a stranger fails the call after a second', async () => {
    const slow = script("rules: [{ when: { last: '/^(a+)+$/' }, reply: { text: A } }]");
    const { outcome } = await ask(slow, requestOf([user(`${'a'.repeat(60)}!`)]));
    expect(outcome).toMatchObject({ kind: 'failed', code: 'TIMEOUT', retryable: false });
  });

  it('placeholders in inserted values are not replaced', async () => {
    const rules = script(`rules: [{ reply: { text: '{{last}}!' } }]`);
    expect(await say(rules, [user('{{agent}}')])).toBe('{{agent}}!');
  });

  it('placeholders in arguments that are written as text are replaced, as a number or escaped in a string', async () => {
    const rule = `{ when: { last: '/pay (\\d+) for (.+)/' }, reply: { tool_calls: [{ name: t, arguments: '{"euros":{{1}},"for":"{{2}}"}' }]`;
    const callOf = ({ outcome }: Awaited<ReturnType<typeof ask>>) =>
      outcome.kind === 'answered' ? outcome.answer.toolCalls[0]?.arguments : undefined;
    const replaced = await ask(script(`rules: [${rule} } }]`), requestOf([user('pay 20 for "a"')]));
    expect(JSON.parse(callOf(replaced) ?? '')).toEqual({ euros: 20, for: '"a"' });
    const verbatim = await ask(
      script(`rules: [${rule}, verbatim: true } }]`),
      requestOf([user('pay 20 for "a"')]),
    );
    expect(callOf(verbatim)).toBe('{"euros":{{1}},"for":"{{2}}"}');
  });
});

describe('the count of a rule', () => {
  const inTurn = script(`rules:
    - { when: { last: a, n: 0 }, reply: { text: first } }
    - { when: { last: a, n: 1 }, reply: { text: second } }
    - { when: { last: a, n: 0 }, reply: { text: third } }
    - { when: { last: a }, reply: { text: 'more {{n}}' } }
    - { reply: { text: 'else {{n}}' } }`);

  it('counted rules answer in turn, and a rule that did not match is not counted', async () => {
    const told = ['a', 'b', 'a', 'b', 'a', 'a', 'a'];
    expect(await replyTo(inTurn, told)).toEqual([
      'first',
      'else 0',
      'second',
      'else 1',
      'third',
      'more 0',
      'more 1',
    ]);
  });

  it('the count is the same for the same request, repeated or in another process', async () => {
    const messages = [user('a'), own('first'), user('a'), own('second'), user('a')];
    const model = createScriptedModel(inTurn);
    const answers = await Promise.all([1, 2].map(() => ask(inTurn, requestOf(messages), model)));
    answers.push(await ask(inTurn, requestOf(messages)));
    for (const { text } of answers) expect(text).toBe('third');
  });

  it('the count does not depend on surrounding text or on the away block', async () => {
    const messages = [
      system('prefix'),
      user('a'),
      own('first'),
      system('[Reviewer]: a a a'),
      system('=== MESSAGES WHILE YOU WERE AWAY ===\n[Reviewer]: a a a'),
      system('=== NEW INTERACTION ==='),
      user('a'),
    ];
    expect(await say(inTurn, messages)).toBe('second');
  });

  it('the count after any conversation equals a count from the beginning', async () => {
    const telling = fc.array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(telling, async (told) => {
        const answers = await replyTo(inTurn, told);
        // The rules, counted independently in one pass.
        const expected = ['first', 'second', 'third'];
        let [more, other] = [0, 0];
        for (const [index, word] of told.entries()) {
          const wanted = word.includes('a') ? (expected.shift() ?? `more ${more++}`) : `else ${other++}`;
          expect(answers[index]).toBe(wanted);
        }
      }),
      { numRuns: 30 },
    );
  });

  it('the count is kept per agent, as a request contains only its own answers', async () => {
    expect(await say(inTurn, [user('a'), system('[Developer]: first'), user('a')], 'reviewer')).toBe('first');
  });
});

describe('an error in a script', () => {
  const failing = script(`rules:
    - { when: { n: 0 }, reply: { error: { code: RATE_LIMITED, message: 'Slow, {{agent}}.' } } }
    - { reply: { text: 'Now {{n}}.' } }`);

  it('a scripted error fails the call as a provider would', async () => {
    const { outcome } = await ask(failing, requestOf([user('x')]));
    expect(outcome).toEqual({
      kind: 'failed',
      code: 'RATE_LIMITED',
      message: 'Slow, dev.',
      partial: { content: '', reasoning: '' },
      retryable: true,
    });
  });

  it('a scripted error counts as a use, so that the retried request is answered, and remains so', async () => {
    const model = createScriptedModel(failing);
    const request = requestOf([user('x')]);
    expect((await ask(failing, request, model)).outcome.kind).toBe('failed');
    expect((await ask(failing, request, model)).text).toBe('Now 0.');
    expect((await ask(failing, request, model)).text).toBe('Now 0.');
    expect(await say(failing, [user('x'), own('Now 0.'), user('y')])).toBe('Now 1.');
  });

  it('a scripted error that ended a turn is derived from the history', async () => {
    const failed = own('\n\nLLM_ERROR {"code":"RATE_LIMITED","message":"Slow."}');
    expect(await say(failing, [user('x'), failed, user('y')])).toBe('Now 0.');
  });

  it.each([
    ['{ status: 429 }', { code: 'RATE_LIMITED', retryable: true }],
    ['{ status: 503 }', { code: 'PROVIDER_ERROR', retryable: true }],
    ['{ status: 401 }', { code: 'UNAUTHORIZED', retryable: false }],
    ['{ status: 422 }', { code: 'BAD_REQUEST', retryable: false }],
    ['{ code: CONTEXT_TOO_LONG }', { code: 'CONTEXT_TOO_LONG', retryable: false }],
    ['{ message: Broken. }', { code: 'PROVIDER_ERROR', message: 'Broken.', retryable: true }],
  ])('the scripted error %s equals the one of a provider', async (error, expected) => {
    const { outcome } = await ask(script(`rules: [{ reply: { error: ${error} } }]`), requestOf([user('x')]));
    expect(outcome).toMatchObject({ kind: 'failed', ...expected });
  });

  it('a scripted error follows the text and is then final, unless the script puts it first', async () => {
    const late = script('rules: [{ reply: { text: Half an, error: { status: 500 } } }]');
    expect((await ask(late, requestOf([user('x')]))).outcome).toMatchObject({
      retryable: false,
      partial: { content: 'Half an' },
    });
    const early = script('rules: [{ reply: { text: Half an, error: { status: 500, afterText: false } } }]');
    expect((await ask(early, requestOf([user('x')]))).outcome).toMatchObject({
      retryable: true,
      partial: { content: '' },
    });
  });

  it('a script without a matching rule is an error', async () => {
    const { outcome } = await ask(
      script('rules: [{ when: { last: z }, reply: { text: x } }]'),
      requestOf([user('a')]),
    );
    expect(outcome).toMatchObject({ kind: 'failed', code: 'NO_RULE', retryable: false });
    expect(outcome.kind === 'failed' && outcome.message).toContain(
      'No rule of script.yaml fits what dev was asked',
    );
    expect(
      choose(script('rules: [{ when: { agent: pm }, reply: { text: x } }]'), requestOf([]), 0),
    ).toBeNull();
  });
});

describe('an answer of a script', () => {
  const slow = script('rules: [{ reply: { text: "one two\\n three", delayMs: 40 } }]');

  it('a scripted answer is streamed word by word with the given delay and an estimate of its tokens', async () => {
    const waits: number[] = [];
    const model = createScriptedModel(slow, { sleep: async (milliseconds) => void waits.push(milliseconds) });
    const { outcome, deltas } = await ask(slow, requestOf([user('12345678'), user('日本')]), model);
    expect(deltas.map((delta: ModelDelta) => delta.delta)).toEqual(['one ', 'two\n ', 'three']);
    expect(waits).toEqual([40, 40]);
    expect(outcome).toMatchObject({
      answer: {
        content: 'one two\n three',
        model: 'scripted',
        finishReason: 'stop',
        usage: { outputTokens: 4 },
      },
    });
    expect(outcome.kind === 'answered' && outcome.answer.usage?.inputTokens).toBeGreaterThanOrEqual(4);
  });

  it('a scripted answer stops on abort and keeps its partial text', async () => {
    const controller = new AbortController();
    const model = createScriptedModel(slow, { sleep: async () => controller.abort() });
    const { outcome, text } = await ask(slow, requestOf([user('x')]), model, controller.signal);
    expect(outcome).toEqual({ kind: 'aborted', partial: { content: 'one ', reasoning: '' } });
    expect(text).toBe('one ');
  });
});
