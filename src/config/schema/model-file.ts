import { z } from 'zod';
import {
  count,
  fieldName,
  headerName,
  httpUrl,
  KEY_HEADER,
  parameterKeys,
  positive,
  sessionClashes,
  text,
  texts,
} from './parameters.ts';
import { PRESET_NAMES, profileKeys } from './profiles.ts';

/** The shape of one model under `models` of `parley.yaml` (SCHEMA-1, SCHEMA-2). */

export const DEFAULT_CONTEXT_TOKENS = 128_000;
export const DEFAULT_MAX_OUTPUT_TOKENS = 4_096;
export const DEFAULT_FIRST_TOKEN_SECONDS = 300;
export const DEFAULT_IDLE_SECONDS = 120;

/** Kinds of files that a model may take. */
const FILE_KINDS = ['image', 'pdf', 'audio'] as const;

/**
 * The protocols of models behind HTTP, by the value of `provider`. `has`: keys of `openai` that it has too. `lacks`: parameters that
 * it does not have. `keyHeader`: a header that only its requests use, as in `src/models/protocols.ts`.
 */
export const PROVIDERS = {
  openai: {
    dialect: 'chat',
    says: 'any endpoint with chat completions',
    baseURL: 'https://api.openai.com/v1',
    keyVariable: 'OPENAI_API_KEY',
    urlVariable: 'OPENAI_BASE_URL',
    model: 'gpt-5-mini',
    keyHeader: null,
    settings: {},
    has: [],
    lacks: [],
  },
  anthropic: {
    dialect: 'anthropic',
    says: "Anthropic's Messages API",
    baseURL: 'https://api.anthropic.com/v1',
    keyVariable: 'ANTHROPIC_API_KEY',
    urlVariable: 'ANTHROPIC_BASE_URL',
    model: 'claude-sonnet-5',
    keyHeader: 'x-api-key',
    settings: { otherAgentsAs: 'user', sendReasoning: 'always', structured: true },
    has: ['stream', 'strictTools', 'structured'],
    lacks: [],
  },
  responses: {
    dialect: 'responses',
    says: "OpenAI's Responses API, with encrypted reasoning",
    baseURL: 'https://api.openai.com/v1',
    keyVariable: 'OPENAI_API_KEY',
    urlVariable: 'OPENAI_BASE_URL',
    model: 'gpt-5-mini',
    keyHeader: null,
    settings: { sendReasoning: 'always', structured: true },
    has: ['stream', 'strictTools', 'structured', 'parallelToolCalls', 'sendReasoning'],
    lacks: ['stop'],
  },
} as const;
export type ProviderName = keyof typeof PROVIDERS;
const PROVIDER_NAMES = Object.keys(PROVIDERS) as [ProviderName, ...ProviderName[]];

/** The defaults of a key, for its description. */
function byProvider(value: (row: (typeof PROVIDERS)[ProviderName]) => string): string {
  const values = new Set(PROVIDER_NAMES.map((name) => value(PROVIDERS[name])));
  return `by provider: ${[...values].join('; ')}`;
}

/** Who speaks at an endpoint without `provider`. */
export function providerOf({
  provider,
  baseURL = '',
}: {
  readonly provider?: ProviderName | 'scripted' | undefined;
  readonly baseURL?: string | undefined;
}): ProviderName | 'scripted' {
  if (provider !== undefined) return provider;
  const host = URL.canParse(baseURL) ? new URL(baseURL).host : '';
  return host === new URL(PROVIDERS.anthropic.baseURL).host ? 'anthropic' : 'openai';
}

const price = z
  .strictObject({
    inputPerMillion: z.number().nonnegative().describe('USD per million input tokens'),
    cachedInputPerMillion: z
      .number()
      .nonnegative()
      .optional()
      .describe(
        'USD per million input tokens that the provider read from its cache (default: inputPerMillion)',
      ),
    cacheWritePerMillion: z
      .number()
      .nonnegative()
      .optional()
      .describe(
        'USD per million input tokens that the provider wrote into its cache (default: inputPerMillion)',
      ),
    outputPerMillion: z.number().nonnegative().describe('USD per million output tokens'),
  })
  .describe(
    'What the model costs (default: the catalog price of a known model at its provider; without a price no cost is counted)',
  );

const session = z
  .strictObject({
    header: headerName.optional().describe('Name of the header that contains the session'),
    field: fieldName
      .optional()
      .describe('Name of the top-level field of the request that contains the session'),
  })
  .refine((value) => (value.header === undefined) !== (value.field === undefined), 'either header or field')
  .describe("How the agent's session is sent to the provider: as header or as field (default: not sent)");

type ParameterKey = keyof typeof parameterKeys;

/** Keys of all models behind HTTP, those of the protocol `openai`, and those of `anthropic`: each key once. */
const HTTP_KEYS = [
  'baseURL',
  'apiKey',
  'apiKeys',
  'session',
  'firstTokenSeconds',
  'idleSeconds',
  ...(Object.keys(parameterKeys) as ParameterKey[]).filter(
    (key) => !['seed', 'reasoningTokens'].includes(key),
  ),
] as const;
const OPENAI_KEYS = [
  'profile',
  'seed',
  ...(Object.keys(profileKeys) as (keyof typeof profileKeys)[]).filter((key) => key !== 'otherAgentsAs'),
] as const;
const ANTHROPIC_KEYS = ['cache', 'reasoningTokens'] as const;

/** The keys that a provider does not have, each with a provider that has it. */
function foreignKeys(provider: ProviderName | 'scripted') {
  const of = <Key extends string>(keys: readonly Key[], owner: string) => keys.map((key) => ({ key, owner }));
  if (provider === 'scripted')
    return [...of([...HTTP_KEYS, ...OPENAI_KEYS], 'openai'), ...of(ANTHROPIC_KEYS, 'anthropic')];
  const { has, lacks }: { readonly has: readonly string[]; readonly lacks: readonly ParameterKey[] } =
    PROVIDERS[provider];
  return [
    ...of(['script'] as const, 'scripted'),
    ...(provider === 'openai'
      ? []
      : of([...OPENAI_KEYS.filter((key) => !has.includes(key)), 'otherAgentsAs'], 'openai')),
    ...of(lacks, 'openai'),
    ...(provider === 'anthropic' ? [] : of(ANTHROPIC_KEYS, 'anthropic')),
  ];
}

/** Parameters that a provider does not have: of an agent, as the model's own keys are checked with its other ones. */
export function foreignParameters(provider: ProviderName | 'scripted'): readonly string[] {
  const keys: readonly string[] = foreignKeys(provider).map(({ key }) => key);
  return provider === 'scripted' ? [] : Object.keys(parameterKeys).filter((key) => keys.includes(key));
}

/** Paths of headers that would replace the key of a provider (PARAMETERS-1). */
export function keyHeaders(
  provider: ProviderName,
  {
    headers = {},
    session,
  }: {
    readonly headers?: object | undefined;
    readonly session?: { header?: string | undefined } | undefined;
  },
): string[][] {
  const isUsed = (name: string) => name.toLowerCase() === PROVIDERS[provider].keyHeader;
  const named = Object.keys(headers)
    .filter(isUsed)
    .map((name) => ['headers', name]);
  return isUsed(session?.header ?? '') ? [...named, ['session', 'header']] : named;
}

const PROVIDER_CHOICE = [...PROVIDER_NAMES, 'scripted'] as const;

export const modelFileSchema = z
  .strictObject({
    provider: z
      .enum(PROVIDER_CHOICE, {
        error: `one of ${PROVIDER_CHOICE.join(', ')}; openai is the protocol: reach other vendors by their endpoint for it (baseURL), which docs/guides/model-providers.md lists`,
      })
      .optional()
      .describe(
        `The protocol. ${PROVIDER_NAMES.map((name) => `${name}: ${PROVIDERS[name].says}`).join('. ')}. scripted: offline and deterministic (default: openai; with a script and without a key for OpenAI's endpoint, scripted)`,
      ),
    baseURL: httpUrl
      .refine(
        (value) => !/^\w+:\/\/[^/]*@/.test(value),
        'a URL without user and password: put a key into apiKey',
      )
      .optional()
      .describe(
        `URL of the endpoint, with its version; anthropic adds /v1 to one without (default ${byProvider(({ urlVariable, baseURL }) => `${urlVariable}, else ${baseURL}`)})`,
      ),
    apiKey: text
      .optional()
      .describe(
        `By reference to a variable: \${OPENAI_API_KEY} (default: none with a baseURL, else ${byProvider(({ keyVariable }) => keyVariable)})`,
      ),
    apiKeys: texts
      .min(2, 'two keys or more; name a single one as apiKey')
      .optional()
      .describe(
        `Instead of apiKey: several keys, by reference to variables; the next one is used when one is refused, or its quota or rate is used up`,
      ),
    fallback: texts
      .min(1)
      .optional()
      .describe(
        'Models that answer instead, in this order, when this one is overloaded, out of quota, not reachable or refuses its keys; each with its own fallback after it',
      ),
    model: text
      .optional()
      .describe(`Name of the model at the provider (default ${byProvider(({ model }) => model)})`),
    script: text
      .optional()
      .describe('A YAML file of rules for scripted, relative to this folder (default: the built-in team)'),
    contextTokens: count
      .optional()
      .describe(
        `Context window of the model, in tokens (default: that of a known model at its provider's host, else ${DEFAULT_CONTEXT_TOKENS})`,
      ),
    maxOutputTokens: count
      .optional()
      .describe(
        `Part of the window that is reserved for the answer (default: ${DEFAULT_MAX_OUTPUT_TOKENS}, or a quarter of a smaller window)`,
      ),
    accepts: z
      .array(z.enum(FILE_KINDS))
      .refine((kinds) => new Set(kinds).size === kinds.length, 'each kind once')
      .optional()
      .describe(
        "Files that the model is shown; other files, and those that its provider refuses, it gets as a line that names them (default: what a known model at its provider's host takes, else none)",
      ),
    firstTokenSeconds: positive
      .optional()
      .describe(
        `Time limit for the first part of an answer; with stream: false of the whole answer (default: ${DEFAULT_FIRST_TOKEN_SECONDS}; with stream: false only limits.turnSeconds)`,
      ),
    idleSeconds: positive
      .optional()
      .describe(`Time limit for each next part of an answer (default: ${DEFAULT_IDLE_SECONDS})`),
    profile: z
      .enum(PRESET_NAMES)
      .optional()
      .describe('Preset for the provider (default: by the host of baseURL, else compatible)'),
    cache: z
      .enum(['5m', '1h', 'off'])
      .optional()
      .describe('How long anthropic keeps what it caches of a request; off: it caches nothing (default: 5m)'),
    ...parameterKeys,
    ...profileKeys,
    price: price.optional(),
    session: session.optional(),
  })
  .superRefine((model, context) => {
    if (model.apiKey !== undefined && model.apiKeys !== undefined)
      context.addIssue({
        code: 'custom',
        path: ['apiKeys'],
        message: 'nothing beside apiKey: name all keys here',
      });
    // MODELS-3: a script is for the time without a key.
    const chosenBy = (['provider', 'baseURL', 'apiKey', 'apiKeys'] as const).find(
      (key) => model[key] !== undefined,
    );
    const provider = providerOf(model);
    for (const { key, owner } of chosenBy ? foreignKeys(provider) : []) {
      if (model[key] === undefined) continue;
      const message = `nothing: provider ${provider} has no ${key} (${owner} has); remove ${key}, or ${chosenBy}`;
      context.addIssue({ code: 'custom', path: [key], message });
    }
    for (const path of provider === 'scripted' ? [] : keyHeaders(provider, model))
      context.addIssue({ code: 'custom', path: [...path], message: KEY_HEADER });
    for (const path of model.session ? sessionClashes(model, model.session) : []) {
      const message = 'another name: session uses this one';
      context.addIssue({ code: 'custom', path: [...path], message });
    }
  });
export type ModelFile = z.infer<typeof modelFileSchema>;
