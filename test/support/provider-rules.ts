import type { DialectName } from '../../src/agents/dialect-port.ts';
import type { PresetName } from '../../src/config/schema/profiles.ts';
import { messagesRefusals } from './messages-rules.ts';
import { refusalOf } from './responses-provider.ts';
import { fileFaults } from './sample-files.ts';

/**
 * The rules of each provider, written from its documentation and not from our code. Takes a request and returns its
 * errors. `docs/guides/model-providers.md` lists the pages.
 */

export interface Body {
  readonly [field: string]: unknown;
  readonly messages: readonly Said[];
}

interface Call {
  readonly [field: string]: unknown;
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

interface Said {
  readonly [field: string]: unknown;
  readonly role: string;
  readonly content: string | null | readonly Readonly<Record<string, unknown>>[];
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly Call[];
  readonly tool_call_id?: string;
}

type Rule = (body: Body) => string[];

const MESSAGE_FIELDS = ['role', 'content', 'tool_calls', 'tool_call_id'];

function at(
  messages: readonly Said[],
  what: string,
  isWrong: (said: Said, index: number) => boolean,
): string[] {
  return messages.flatMap((said, index) =>
    isWrong(said, index) ? [`${what} at ${index} (${said.role})`] : [],
  );
}

const fields =
  (...known: string[]): Rule =>
  (body) =>
    Object.keys(body)
      .filter((field) => !known.includes(field))
      .map((field) => `the field ${field}`);

const messageFields =
  (...more: string[]): Rule =>
  ({ messages }) =>
    at(messages, 'an unknown field', (said) =>
      Object.keys(said).some((field) => !MESSAGE_FIELDS.includes(field) && !more.includes(field)),
    );

/** Fields of a call and of its function that are not OpenAI's. */
const callFields =
  (...more: string[]): Rule =>
  ({ messages }) =>
    at(messages, 'an unknown field of a call', ({ tool_calls: calls = [] }) =>
      calls.some(
        (call) =>
          Object.keys(call).some((field) => !['id', 'type', 'function', ...more].includes(field)) ||
          Object.keys(call.function).some((field) => !['name', 'arguments'].includes(field)),
      ),
    );

/** Gemini joins a result and a text of the user after it, and refuses that. */
const onlyModelAfterResults: Rule = ({ messages }) =>
  at(
    messages,
    'after a result',
    ({ role }, index) => role === 'user' && messages[index - 1]?.role === 'tool',
  );

/** Gemini 3 refuses a message with calls of which the first has no signature: its own, or the one for calls of other models. */
const signedCalls: Rule = ({ messages }) =>
  at(messages, 'calls without a signature', ({ tool_calls: [first] = [] }) => {
    const { google } = (first?.extra_content ?? {}) as { google?: { thought_signature?: unknown } };
    const signature = String(google?.thought_signature);
    return (
      first !== undefined && signature !== 'skip_thought_signature_validator' && !signature.startsWith('sig-')
    );
  });

const roles =
  (...known: string[]): Rule =>
  ({ messages }) =>
    at(messages, 'an unknown role', ({ role }) => !known.includes(role));

/** In every protocol of this family the results of a message's calls, and nothing else, follow it directly. */
const pairs: Rule = ({ messages }) => {
  const wrong: string[] = [];
  let open: string[] = [];
  for (const [index, { role, tool_calls: calls = [], tool_call_id: id }] of messages.entries()) {
    if (role === 'tool' && !open.includes(id ?? '')) wrong.push(`a result without its call at ${index}`);
    if (role !== 'tool' && open.length > 0) wrong.push(`calls without results before ${index}`);
    open = role === 'tool' ? open.filter((call) => call !== id) : calls.map((call) => call.id);
    if (new Set(open).size < open.length) wrong.push(`an id twice at ${index}`);
  }
  return open.length > 0 ? [...wrong, 'calls without results at the end'] : wrong;
};

/** The strictest readers together: Gemini's names, OpenAI's ids, and the depth and characters that Rust's readers accept. */
const strictCalls: Rule = ({ messages }) => [
  ...at(messages, 'a name or id of a call', ({ tool_calls: calls = [] }) =>
    calls.some(
      (call) => !/^[a-zA-Z_][\w-]{0,63}$/.test(call.function.name) || !/^[\w-]{1,40}$/.test(call.id),
    ),
  ),
  ...at(messages, 'arguments of a call', ({ tool_calls: calls = [] }) =>
    calls.some((call) => !isPlainObject(call.function.arguments)),
  ),
  ...at(messages, 'half of a surrogate pair', hasHalf),
];

function isPlainObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return value?.constructor === Object && depthOf(value) <= 100 && !hasHalf(value);
  } catch {
    return false;
  }
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** `JSON.stringify` escapes halves only. */
function hasHalf(value: unknown): boolean {
  return /(?<!\\)(?:\\\\)*\\ud[89a-f]/i.test(JSON.stringify(value));
}

const systemFirstOnly: Rule = ({ messages }) =>
  at(messages, 'instructions', ({ role }, index) => ['system', 'developer'].includes(role) !== (index === 0));

const noNeighboursOfOneRole: Rule = ({ messages }) =>
  at(messages, 'the role before', ({ role }, index) => role !== 'tool' && messages[index - 1]?.role === role);

const lastIs =
  (...known: string[]): Rule =>
  ({ messages }) =>
    known.includes(messages.at(-1)?.role ?? '') ? [] : [`${messages.at(-1)?.role} at the end`];

/** A list of contents is the user's, and each text of it has words. */
const contents: Rule = (body) => [
  ...fileFaults(body),
  ...at(
    body.messages,
    'a list of contents',
    ({ role, content }) => Array.isArray(content) && role !== 'user',
  ),
  ...at(body.messages, 'an empty text', ({ content }) => Array.isArray(content) && textIn(content) === null),
];

/** Null: a text of the list is empty. */
function textIn(content: Said['content']): string | null {
  if (!Array.isArray(content)) return content as string | null;
  const texts = content.flatMap(({ type, text }) => (type === 'text' ? [String(text)] : []));
  return texts.includes('') ? null : texts.join('');
}

const nothingEmpty: Rule = ({ messages }) =>
  at(messages, 'no content', ({ role, content, tool_calls: calls }) =>
    role === 'tool' ? false : !textIn(content)?.trim() && !calls?.length,
  );

const callsCarryReasoning: Rule = ({ messages }) =>
  at(messages, 'calls without reasoning', (said) => !!said.tool_calls && !said.reasoning_content);

const toolFieldsOnlyWithTools: Rule = (body) =>
  'parallel_tool_calls' in body && !('tools' in body) ? ['parallel_tool_calls without tools'] : [];

const streamOptionsOnlyInStreams: Rule = ({ stream, stream_options: options }) =>
  options !== undefined && stream !== true ? ['stream_options without a stream'] : [];

/** mistral-common, `MistralRequestValidatorV13` in serving mode. */
const MISTRAL_AFTER: Readonly<Record<string, readonly string[]>> = {
  system: ['user', 'assistant', 'system'],
  user: ['assistant', 'system', 'user'],
  assistant: ['assistant', 'user', 'tool'],
  tool: ['assistant', 'tool'],
};
const mistralOrder: Rule = ({ messages }) =>
  at(messages, 'out of order', ({ role }, index) => {
    const before = messages[index - 1];
    return before !== undefined && !MISTRAL_AFTER[before.role]?.includes(role);
  });
const mistralNames: Rule = ({ messages }) =>
  at(messages, 'a wrong id or name', ({ tool_calls: calls = [], tool_call_id: result }) => {
    const ids = [...calls.map((call) => call.id), ...(result === undefined ? [] : [result])];
    const names = calls.map((call) => call.function.name);
    return (
      ids.some((id) => !/^[a-zA-Z0-9]{9}$/.test(id)) || names.some((name) => !/^[\w-]{1,64}$/.test(name))
    );
  });

const OPENAI_FIELDS = ['model', 'messages', 'stream', 'stream_options', 'tools', 'parallel_tool_calls'];
const COMMON: readonly Rule[] = [
  pairs,
  contents,
  strictCalls,
  streamOptionsOnlyInStreams,
  toolFieldsOnlyWithTools,
  lastIs('user', 'system', 'developer', 'tool'),
];
const CLASSIC: readonly Rule[] = [
  ...COMMON,
  callFields(),
  fields(...OPENAI_FIELDS, 'max_tokens'),
  roles('system', 'user', 'assistant', 'tool'),
];
const TEMPLATE: readonly Rule[] = [...CLASSIC, messageFields(), systemFirstOnly, noNeighboursOfOneRole];
const THINKING: readonly Rule[] = [
  ...CLASSIC,
  messageFields('reasoning_content'),
  callsCarryReasoning,
  nothingEmpty,
];

const RULES: Readonly<Record<PresetName, readonly Rule[]>> = {
  compatible: [...CLASSIC, messageFields()],
  openai: [
    ...COMMON,
    callFields(),
    fields(...OPENAI_FIELDS, 'max_completion_tokens'),
    messageFields(),
    roles('developer', 'user', 'assistant', 'tool'),
  ],
  gemini: [
    ...COMMON,
    fields(...OPENAI_FIELDS, 'max_tokens'),
    roles('system', 'user', 'assistant', 'tool'),
    messageFields('extra_content'),
    callFields('extra_content'),
    signedCalls,
    onlyModelAfterResults,
    systemFirstOnly,
    nothingEmpty,
    lastIs('user', 'tool'),
    noNeighboursOfOneRole,
  ],
  mistral: [
    ...COMMON,
    callFields(),
    fields('model', 'messages', 'stream', 'max_tokens', 'tools'),
    messageFields(),
    roles('system', 'user', 'assistant', 'tool'),
    mistralOrder,
    mistralNames,
    nothingEmpty,
    lastIs('user', 'tool'),
  ],
  deepseek: THINKING,
  kimi: THINKING,
  qwen: TEMPLATE,
  vllm: TEMPLATE,
  ollama: [...TEMPLATE, fields('model', 'messages', 'stream', 'stream_options', 'max_tokens', 'tools')],
  llamacpp: TEMPLATE,
};

/** Of the other dialects: the errors of a body. */
export const DIALECT_RULES: Readonly<Partial<Record<DialectName, (body: unknown) => string | string[]>>> = {
  anthropic: messagesRefusals,
  responses: (body) => refusalOf(body) ?? [],
};

/** The errors of the request for the provider of this preset. */
export function refusalsOf(preset: PresetName, body: Body): string[] {
  return RULES[preset].flatMap((rule) => rule(body));
}

/** An answer with one call and with fields that its provider wants back, as a stream of deltas. */
export interface OpaqueAnswer {
  readonly deltas: readonly Readonly<Record<string, unknown>>[];
  /** The fields that the next request must have: of the message, and of its call. */
  readonly message?: Readonly<Record<string, unknown>>;
  readonly call?: Readonly<Record<string, unknown>>;
}

const PLAN = { name: 'set_phase', arguments: '{"phase":"plan","reason":"to plan"}' };
const planCall = (more: object = {}) => ({ id: 'x1', type: 'function', function: PLAN, ...more });
const signed = (by: string, more: object = {}) => ({
  extra_content: { [by]: { thought_signature: 'sig-1', ...more } },
});
const detail = (index: number, type: string, more: object) => ({ type: `reasoning.${type}`, index, ...more });
const thinking = (text: string, signature: string | null = null) => ({
  type: 'thinking',
  thinking: text,
  signature,
});

/** From the documents and recorded streams of the providers; `docs/guides/model-providers.md` lists them. */
export const OPAQUE_ANSWERS: Readonly<Record<string, OpaqueAnswer>> = {
  'Gemini 3, whose calls have no index': {
    deltas: [{ role: 'assistant', tool_calls: [planCall(signed('google'))] }],
    call: signed('google'),
  },
  'Gemini 3 on Vertex, with the signature after the call': {
    deltas: [
      { tool_calls: [{ index: 0, ...planCall() }] },
      { tool_calls: [{ index: 0, ...signed('vertex') }] },
    ],
    call: signed('vertex'),
  },
  'Gemini 3 with thoughts': {
    deltas: [
      { content: 'Hm.', ...signed('google', { thought: true }) },
      { content: '', tool_calls: [planCall(signed('google'))] },
    ],
    message: signed('google', { thought: true }),
    call: signed('google'),
  },
  'Claude by OpenRouter, in pieces by index': {
    deltas: [
      {
        reasoning: 'Let',
        reasoning_details: [detail(0, 'text', { text: 'Let', format: 'anthropic-claude-v1' })],
      },
      {
        reasoning: ' me',
        reasoning_details: [
          detail(0, 'text', { text: ' me', format: 'anthropic-claude-v1', signature: null }),
        ],
      },
      { reasoning_details: [detail(0, 'text', { signature: 'EqAB==', format: 'anthropic-claude-v1' })] },
      { reasoning_details: [detail(1, 'encrypted', { data: 'AAEC', id: 'r1' })] },
      { tool_calls: [{ index: 0, ...planCall() }] },
    ],
    message: {
      reasoning_details: [
        detail(0, 'text', { text: 'Let me', format: 'anthropic-claude-v1', signature: 'EqAB==' }),
        detail(1, 'encrypted', { data: 'AAEC', id: 'r1' }),
      ],
    },
  },
  'Gemini by OpenRouter, with several details of one index': {
    deltas: [
      {
        reasoning_details: [
          detail(0, 'text', { text: 'Hm.' }),
          detail(0, 'encrypted', { id: 'a', data: 'AA' }),
        ],
      },
      { reasoning_details: [detail(0, 'encrypted', { id: 'b', data: 'BB' })] },
      { tool_calls: [{ index: 0, ...planCall() }] },
    ],
    message: {
      reasoning_details: [
        detail(0, 'text', { text: 'Hm.' }),
        detail(0, 'encrypted', { id: 'a', data: 'AA' }),
        detail(0, 'encrypted', { id: 'b', data: 'BB' }),
      ],
    },
  },
  'Claude by LiteLLM, in pieces without an index': {
    deltas: [
      { thinking_blocks: [thinking('Let')], reasoning_content: 'Let' },
      { thinking_blocks: [thinking(' me')], reasoning_content: ' me' },
      { thinking_blocks: [thinking('', 'EqAB==')] },
      { thinking_blocks: [{ type: 'redacted_thinking', data: 'AAEC' }] },
      { thinking_blocks: [thinking('More'), thinking('', 'EqAC==')] },
      { tool_calls: [{ index: 0, ...planCall({ provider_specific_fields: { thought_signature: 's' } }) }] },
    ],
    message: {
      thinking_blocks: [
        thinking('Let me', 'EqAB=='),
        { type: 'redacted_thinking', data: 'AAEC' },
        thinking('More', 'EqAC=='),
      ],
    },
    call: { provider_specific_fields: { thought_signature: 's' } },
  },
  'Copilot, as texts': {
    deltas: [
      { reasoning_text: 'Let' },
      { reasoning_text: ' me' },
      { reasoning_opaque: 'AAEC' },
      { tool_calls: [{ index: 0, ...planCall() }] },
    ],
    message: { reasoning_text: 'Let me', reasoning_opaque: 'AAEC' },
  },
};
