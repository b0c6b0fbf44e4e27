import { z } from 'zod';
import { bool, count } from './parameters.ts';

/**
 * Differences between providers of the same protocol. `docs/guides/model-providers.md` gives the source of each preset's settings.
 *
 * PROFILES-1 A preset has a value for every setting; settings in the file override it.
 * PROFILES-2 Without a preset, the host decides if it is a known provider's; else `compatible`.
 */

function oneOf<const Values extends readonly string[]>(values: Values, says: string) {
  return z.enum(values).optional().describe(`${says} (default: the profile's)`);
}

function yesOrNo(says: string) {
  return bool.optional().describe(`${says} (default: the profile's)`);
}

/** Overrides of the preset's settings. No defaults: the preset has them (PROFILES-1). */
export const profileKeys = {
  otherAgentsAs: oneOf(
    ['system', 'user'],
    "The role of other agents' messages and of notices; user for providers that refuse system messages after the first",
  ),
  instructionsAs: oneOf(['system', 'developer'], 'The role of instructions'),
  mergeMessages: yesOrNo(
    'true: consecutive messages of one role are joined, with === NEXT MESSAGE === between them',
  ),
  sendReasoning: oneOf(
    ['never', 'with-calls', 'always'],
    "Which of an agent's own messages include reasoning_content; with-calls: those with tool calls, and those after a result",
  ),
  callIds: oneOf(['plain', 'nine'], 'nine: ids of tool calls are nine letters and digits'),
  emptyAnswers: oneOf(
    ['sent', 'left-out'],
    "Whether an agent's own messages without text and calls are sent",
  ),
  afterResults: oneOf(
    ['anything', 'assistant'],
    "assistant: the agent's answer Understood. is inserted between a result and a message of others",
  ),
  unsignedCalls: oneOf(
    ['plain', 'marked'],
    "marked: calls without a signature, such as those of another model, have the value that skips Gemini's check",
  ),
  outputLimit: oneOf(
    ['max_tokens', 'max_completion_tokens'],
    'The field of the request that contains maxOutputTokens',
  ),
  parallelToolCalls: yesOrNo('false: requests with tools have parallel_tool_calls: false'),
  strictTools: yesOrNo('true: tools whose schema allows it are sent with strict: true'),
  structured: z
    .union([bool, z.literal('without-tools')])
    .optional()
    .describe(
      "true: the schema of a typed answer is sent as one that the model must follow, if every provider could enforce it; without-tools: only in requests without tools (default: the profile's)",
    ),
  stream: yesOrNo('false: the answer arrives whole, not as a stream'),
  streamUsage: yesOrNo('false: stream_options is not sent'),
  maxFiles: count.optional().describe("Most files that a request contains (default: the profile's)"),
};

export type ProfileKeys = { readonly [K in keyof typeof profileKeys]?: z.infer<(typeof profileKeys)[K]> };

export type ProfileSettings = { readonly [K in keyof ProfileKeys]-?: NonNullable<ProfileKeys[K]> };

const COMPATIBLE: ProfileSettings = {
  otherAgentsAs: 'system',
  instructionsAs: 'system',
  mergeMessages: false,
  sendReasoning: 'never',
  callIds: 'plain',
  emptyAnswers: 'sent',
  afterResults: 'anything',
  unsignedCalls: 'plain',
  outputLimit: 'max_tokens',
  parallelToolCalls: true,
  strictTools: false,
  structured: false,
  stream: true,
  streamUsage: true,
  maxFiles: 20,
};

/** The model's chat template decides: the strictest require one system message, then alternating roles. */
const BY_TEMPLATE: ProfileSettings = {
  ...COMPATIBLE,
  otherAgentsAs: 'user',
  mergeMessages: true,
};

/** These servers constrain all that the model writes: it could not call a tool. */
const LOCAL: ProfileSettings = { ...BY_TEMPLATE, structured: 'without-tools' };

export const PRESETS = {
  compatible: COMPATIBLE,
  openai: {
    ...COMPATIBLE,
    instructionsAs: 'developer',
    outputLimit: 'max_completion_tokens',
    structured: true,
  },
  gemini: {
    ...COMPATIBLE,
    otherAgentsAs: 'user',
    mergeMessages: true,
    emptyAnswers: 'left-out',
    afterResults: 'assistant',
    unsignedCalls: 'marked',
    structured: 'without-tools',
  },
  mistral: {
    ...COMPATIBLE,
    otherAgentsAs: 'user',
    mergeMessages: true,
    callIds: 'nine',
    emptyAnswers: 'left-out',
    afterResults: 'assistant',
    streamUsage: false,
    maxFiles: 8,
    structured: 'without-tools',
  },
  deepseek: { ...COMPATIBLE, sendReasoning: 'with-calls', emptyAnswers: 'left-out' },
  kimi: { ...COMPATIBLE, sendReasoning: 'with-calls', emptyAnswers: 'left-out' },
  qwen: BY_TEMPLATE,
  vllm: LOCAL,
  ollama: LOCAL,
  llamacpp: LOCAL,
} as const satisfies Readonly<Record<string, ProfileSettings>>;

export type PresetName = keyof typeof PRESETS;
export const PRESET_NAMES = Object.keys(PRESETS) as [PresetName, ...PresetName[]];

const PRESET_OF_HOST: Readonly<Record<string, PresetName>> = {
  'api.openai.com': 'openai',
  'generativelanguage.googleapis.com': 'gemini',
  'api.mistral.ai': 'mistral',
  'api.deepseek.com': 'deepseek',
  'api.moonshot.ai': 'kimi',
  'api.moonshot.cn': 'kimi',
};
/** Each customer has a host. */
const AZURE = /\.(openai|cognitiveservices)\.azure\.(com|us|cn)$/;
/** Each region has a host. */
const VERTEX = /^([a-z\d-]+-)?aiplatform\.googleapis\.com$/;

function presetOf(baseURL: string | null): PresetName | undefined {
  if (baseURL === null || !URL.canParse(baseURL)) return undefined;
  const { host } = new URL(baseURL);
  if (AZURE.test(host)) return 'openai';
  return VERTEX.test(host) ? 'gemini' : PRESET_OF_HOST[host];
}

/** A preset with the overrides of the file. */
export interface ModelProfileConfig extends ProfileSettings {
  readonly preset: PresetName;
  /** Who chose the preset. */
  readonly chosenBy: 'file' | 'host' | 'default';
}

export function resolveProfile(
  said: PresetName | undefined,
  keys: ProfileKeys,
  baseURL: string | null,
): ModelProfileConfig {
  const guessed = presetOf(baseURL);
  const preset = said ?? guessed ?? 'compatible';
  const chosenBy = said ? 'file' : guessed ? 'host' : 'default';
  const settings: ProfileSettings = PRESETS[preset];
  const names = Object.keys(COMPATIBLE) as (keyof ProfileSettings)[];
  const own = Object.fromEntries(
    names.filter((name) => keys[name] !== undefined).map((name) => [name, keys[name]]),
  );
  return { preset, chosenBy, ...settings, ...own };
}
