import { describe, expect, it } from 'vitest';
import { deepProbe, type Habit, probe } from '../../src/daemon/index.ts';
import { anthropicApi, type SaidBlock } from '../support/anthropic-provider.ts';
import { type FakeHandler, type FakeReply, startFakeProvider } from '../support/fake-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { answering } from '../support/responses-provider.ts';
import { hasLongTests } from '../support/runs.ts';
import { load } from '../unit/config/folder.ts';

/** `doctor --probe --deep` in process, against the stand-in of each dialect. */

type Stage = 'asked' | 'answered' | 'count' | 'misnamed';

interface Said {
  readonly reasoning?: string;
  /** The arguments of a call of `read_meter`. */
  readonly call?: string;
  readonly text?: string;
  readonly isCut?: boolean;
  /** The request fails: no such model, or it is refused. */
  readonly error?: 'missing' | 'refused' | 'key';
}

/** A provider on which all habits hold. */
const GOOD: Readonly<Record<Stage, Said>> = {
  asked: { reasoning: 'The north meter it is.', call: '{"meter":"north","days":3}' },
  answered: { text: 'QX7-K4, one two three four five.' },
  count: { text: 'one two three', isCut: true },
  misnamed: { error: 'missing' },
};

function stageOf(request: unknown): Stage {
  const body = JSON.stringify(request);
  if (body.includes('that-does-not-exist')) return 'misnamed';
  if (body.includes('QX7-K4')) return 'answered';
  return body.includes('read_meter') ? 'asked' : 'count';
}

const STATUS = { missing: 404, refused: 400, key: 401 } as const;
const ERROR_TYPE = {
  missing: 'not_found_error',
  refused: 'invalid_request_error',
  key: 'authentication_error',
} as const;

/** By dialect: the stand-in, and the settings of a model that reasons. */
const STAND_INS: Readonly<
  Record<string, readonly [handler: (say: (stage: Stage) => Said) => FakeHandler, settings: object]>
> = {
  openai: [
    (say) => (request) => {
      const stage = stageOf(request.json);
      const { call, error, isCut, ...said } = say(stage);
      if (error) return { status: STATUS[error], body: { error: { message: `a ${error}` } } };
      const usage = { prompt_tokens: 90, completion_tokens: 9, total_tokens: 99 };
      const cached = stage === 'answered' ? { prompt_tokens_details: { cached_tokens: 64 } } : {};
      return {
        ...said,
        ...(call !== undefined && { toolCalls: [{ name: 'read_meter', arguments: call }] }),
        ...(isCut && { finishReason: 'length' }),
        usage: { ...usage, ...cached },
      };
    },
    { reasoningEffort: 'low', sendReasoning: 'with-calls' },
  ],
  anthropic: [
    (say) =>
      anthropicApi((body) => {
        const { reasoning, call, text, error, isCut } = say(stageOf(body));
        if (error) return { error: ERROR_TYPE[error] };
        const blocks: SaidBlock[] = [
          ...(reasoning ? [{ type: 'thinking', thinking: reasoning } as const] : []),
          ...(text ? [{ type: 'text', text } as const] : []),
          ...(call ? [{ type: 'tool_use', name: 'read_meter', input: JSON.parse(call) } as const] : []),
        ];
        return { blocks, ...(isCut && { stopReason: 'max_tokens' }) };
      }).answer,
    { reasoningTokens: 1_024, maxOutputTokens: 8_000 },
  ],
  responses: [
    (say) =>
      answering((body) => {
        const { reasoning, call, text, error, isCut } = say(stageOf(body));
        if (error) return { reply: { status: STATUS[error], body: { error: { message: `a ${error}` } } } };
        const output = [
          ...(reasoning ? [{ reasoning: [reasoning] }] : []),
          ...(text ? [{ text }] : []),
          ...(call ? [{ call: 'read_meter', arguments: call }] : []),
        ];
        return { output, ...(isCut && { incomplete: 'max_output_tokens' as const }) };
      }),
    { reasoningEffort: 'low' },
  ],
};

interface Case {
  readonly says?: Partial<Record<Stage, Said>>;
  readonly settings?: object;
  /** Changes what the stand-in sends. */
  readonly sends?: (reply: FakeReply) => FakeReply;
}

async function opened(provider: string, { says, settings, sends = (reply) => reply }: Case = {}) {
  const [handler, usual] = STAND_INS[provider] ?? [];
  if (!handler) throw new Error(`no stand-in of ${provider}`);
  const answer = handler((stage) => ({ ...GOOD, ...says })[stage]);
  const server = untilTestEnds(
    await startFakeProvider(async (request, count) => sends(await answer(request, count))),
  );
  const price = { inputPerMillion: 10, outputPerMillion: 100 };
  const model = { provider, baseURL: server.url, apiKey: 'sk-x', model: 'm', price, ...usual, ...settings };
  const config = await load({ 'parley.yaml': JSON.stringify({ models: { default: model } }) });
  return { config, requests: server.requests };
}

async function probed(provider: string, changed?: Case) {
  const { config, requests } = await opened(provider, changed);
  const [found] = await deepProbe(config);
  if (!found) throw new Error('nothing was probed');
  const habits = new Map(found.habits.map((habit) => [habit.name, habit]));
  return { ...found, habits, requests };
}

/** Without the fields of these names, wherever they are in what is sent. */
const without =
  (...names: string[]) =>
  (reply: FakeReply): FakeReply => {
    const strip = (piece: unknown) =>
      String(piece).replace(/^data: (\{.*\})$/m, (_, json: string) => {
        const kept = JSON.parse(json, (name, value) => (names.includes(name) ? undefined : value));
        return `data: ${JSON.stringify(kept)}`;
      });
    return Array.isArray(reply.body) ? { ...reply, body: reply.body.map(strip) } : { ...reply, usage: {} };
  };

type Expected = readonly [
  title: string,
  changed: Case,
  habit: string,
  seen: RegExp,
  /** The fix of a habit that does not hold, or another state. */
  otherwise: RegExp | Exclude<Habit['state'], 'does not hold'>,
];

/** In every dialect. */
const CASES: readonly Expected[] = [
  [
    'answers that arrive whole',
    { says: { answered: { text: 'QX7-K4' }, count: { text: 'one', isCut: true } } },
    'text is streamed',
    /each answer came in one part/,
    /models\.default\.stream: false/,
  ],
  ['stream: false', { settings: { stream: false } }, 'text is streamed', /stream: false is set/, 'not known'],
  [
    'a call with an argument of another type',
    { says: { asked: { ...GOOD.asked, call: '{"meter":"north","days":"3"}' } } },
    'a tool is called as asked',
    /called "read_meter" with .*days/,
    /strictTools: true/,
  ],
  [
    'a text instead of a call',
    { says: { asked: { text: 'I cannot.' } } },
    'a tool is called as asked',
    /it answered "I cannot\."/,
    /choose a model that calls tools/,
  ],
  [
    'an answer that is cut before its call',
    { says: { asked: { text: 'Let me', isCut: true } } },
    'a tool is called as asked',
    /was cut before a call/,
    /raise models\.default\.maxOutputTokens/,
  ],
  [
    'a text instead of a call',
    { says: { asked: { text: 'I cannot.' } } },
    'the result of a tool is used',
    /no tool was called/,
    'not known',
  ],
  [
    'refused tools',
    { says: { asked: { error: 'refused' } } },
    'a tool is called as asked',
    /BAD_REQUEST: The provider answered 400/,
    /give its agents no tools/,
  ],
  [
    'an answer without what the tool returned',
    { says: { answered: { text: 'The meter was read.' } } },
    'the result of a tool is used',
    /it answered "The meter was read\."/,
    /choose another model/,
  ],
  [
    'a refused result',
    { says: { answered: { error: 'refused' } } },
    'the result of a tool is used',
    /BAD_REQUEST/,
    /models\.default\.(profile|baseURL)/,
  ],
  [
    'reasoning that is refused when it is sent back',
    { says: { answered: { error: 'refused' } } },
    'reasoning is returned and accepted back',
    /BAD_REQUEST/,
    /models\.default\.(sendReasoning: never|baseURL)/,
  ],
  [
    'answers without usage',
    { sends: without('usage') },
    'usage is reported',
    /missing in 3 of 3 answers/,
    /models\.default\.stream: false/,
  ],
  [
    'an answer that ignores the output limit',
    { says: { count: { text: 'one two three' } } },
    'the output limit ends an answer',
    /16 tokens ended with stop/,
    /outputLimit: max_completion_tokens|baseURL/,
  ],
  [
    'a short answer that is refused',
    { says: { count: { error: 'refused' } } },
    'the output limit ends an answer',
    /BAD_REQUEST/,
    /keep models\.default\.maxOutputTokens/,
  ],
  [
    'an endpoint that answers for any model',
    { says: { misnamed: GOOD.count } },
    'a wrong model name is refused',
    /ignores the name/,
    /check the spelling/,
  ],
];

const UNREASONED: Expected = [
  'an answer without reasoning',
  { says: { asked: { ...GOOD.asked, reasoning: '' } }, settings: { reasoningTokens: undefined } },
  'reasoning is returned and accepted back',
  /so short a task|has no reasoningEffort/,
  'not known',
];

const UNSENT: Expected = [
  'sendReasoning: never',
  { settings: { sendReasoning: 'never' } },
  'reasoning is returned and accepted back',
  /not sent back/,
  'holds',
];

/** Of one dialect. */
const OWN_CASES: Readonly<Record<string, readonly Expected[]>> = {
  openai: [
    UNREASONED,
    UNSENT,
    [
      'a result that is refused because its reasoning is missing',
      { says: { answered: { error: 'refused' } }, settings: { sendReasoning: 'never' } },
      'the result of a tool is used',
      /BAD_REQUEST/,
      /sendReasoning: with-calls/,
    ],
    [
      'reasoning that is counted only',
      {
        says: { asked: { ...GOOD.asked, reasoning: '' } },
        sends: (reply) => ({
          ...reply,
          usage: { ...reply.usage, completion_tokens_details: { reasoning_tokens: 7 } },
        }),
      },
      'reasoning is returned and accepted back',
      /7 tokens of reasoning are counted/,
      /provider: responses/,
    ],
    [
      'usage that is not asked for',
      { settings: { streamUsage: false }, sends: without('usage') },
      'usage is reported',
      /missing in 3/,
      /streamUsage: true/,
    ],
    [
      'a prefix that is read anew',
      {
        sends: (reply) => ({
          ...reply,
          usage: { ...reply.usage, prompt_tokens_details: { cached_tokens: 0 } },
        }),
      },
      'a repeated prefix is read from the cache',
      /0 of 90 input tokens/,
      /prompt_cache_key/,
    ],
    [
      'usage that does not name cached tokens',
      { sends: (reply) => ({ ...reply, usage: { prompt_tokens: 9, completion_tokens: 1 } }) },
      'a repeated prefix is read from the cache',
      /does not report it/,
      'not known',
    ],
  ],
  anthropic: [
    UNREASONED,
    [
      'a model whose cache is off',
      { settings: { cache: 'off' } },
      'a repeated prefix is read from the cache',
      /0 of \d+ input tokens/,
      /cache: 5m/,
    ],
    [
      'reasoning without a signature',
      { sends: without('signature') },
      'reasoning is returned and accepted back',
      /without what its provider accepts back/,
      /models\.default\.baseURL/,
    ],
  ],
  responses: [
    UNSENT,
    [
      'a window that is too small for a prefix that is cached',
      { settings: { contextTokens: 6_000, maxOutputTokens: 1_000 } },
      'a repeated prefix is read from the cache',
      /0 of \d+ input tokens/,
      /prompt_cache_key/,
    ],
    [
      'reasoning that is counted only',
      { says: { asked: { ...GOOD.asked, reasoning: '' } } },
      'reasoning is returned and accepted back',
      /12 tokens of reasoning are counted/,
      /extraBody/,
    ],
    [
      'usage that does not name cached tokens',
      { sends: without('cached_tokens') },
      'a repeated prefix is read from the cache',
      /does not report it/,
      'not known',
    ],
    [
      'reasoning that is not encrypted',
      { sends: without('encrypted_content') },
      'reasoning is returned and accepted back',
      /without what its provider accepts back/,
      /extraBody/,
    ],
  ],
};

describe.each(Object.keys(STAND_INS))('the deep probe of provider %s', (provider) => {
  const shared = hasLongTests || provider === 'openai' ? CASES : [];
  it('comes after a short request that is accepted although the model reasons', async () => {
    const { config } = await opened(provider, { says: { count: { text: 'Yes', isCut: true } } });
    expect(await probe(config)).toMatchObject([{ name: 'default', fault: null }]);
  });

  it('finds that all habits hold where the protocol is followed, with four calls', async () => {
    const { habits, fault, used, requests } = await probed(provider);
    expect(fault).toBeNull();
    const states = [...habits.values()].map(({ name, state, seen }) => [name, state, seen]);
    expect(states.filter(([, state]) => state !== 'holds')).toEqual([]);
    expect(states).toHaveLength(8);
    expect(used).toMatchObject({ calls: 4, unpricedCalls: 0 });
    expect(used.usd).toBeGreaterThan(0);
    expect(requests).toHaveLength(4);
  });

  for (const [title, changed, name, seen, otherwise] of [...shared, ...(OWN_CASES[provider] ?? [])]) {
    const [state, fix] = otherwise instanceof RegExp ? ['does not hold', otherwise] : [otherwise];
    it(`finds, with ${title}, that “${name}” ${state === 'not known' ? 'is ' : ''}${state}`, async () => {
      const { habits } = await probed(provider, changed);
      const found = habits.get(name);
      expect(found).toMatchObject({ state, seen: expect.stringMatching(seen) });
      expect(found?.fix).toEqual(fix === undefined ? undefined : expect.stringMatching(fix));
    });
  }

  it('reports the first refusal if a request without tools is refused, too', async () => {
    const refused: Said = { error: 'refused' };
    const { habits, fault, requests } = await probed(provider, { says: { asked: refused, count: refused } });
    expect(fault).toMatchObject({ code: 'BAD_REQUEST' });
    expect(habits.size).toBe(0);
    expect(requests).toHaveLength(2);
  });

  it('stops after the first call if its key is refused', async () => {
    const { habits, fault, requests } = await probed(provider, { says: { asked: { error: 'key' } } });
    expect(fault).toMatchObject({ code: 'UNAUTHORIZED' });
    expect(habits.size).toBe(0);
    expect(requests).toHaveLength(1);
  });
});

describe('the time limit of a deep probe', () => {
  const hanging = (stage: Stage): FakeHandler => {
    const answer = STAND_INS.openai?.[0]((at) => GOOD[at]);
    return (request, count) =>
      stageOf(request.json) === stage || !answer ? { hang: 'before-headers' } : answer(request, count);
  };

  const hangs = [
    ['asked', 'TIMEOUT', undefined],
    ['count', undefined, 'not known'],
  ] as const;
  it.each(hangs.slice(0, hasLongTests ? 2 : 1))('ends a call that hangs: %s', async (stage, code, state) => {
    const { url } = untilTestEnds(await startFakeProvider(hanging(stage)));
    const model = { baseURL: url, apiKey: 'sk-x', model: 'm' };
    const config = await load({ 'parley.yaml': JSON.stringify({ models: { default: model } }) });
    const [found] = await deepProbe(config, 1_000);
    expect(found?.fault?.code).toBe(code);
    const limited = found?.habits.find(({ name }) => name === 'the output limit ends an answer');
    expect(limited?.state).toBe(state);
  });
});
