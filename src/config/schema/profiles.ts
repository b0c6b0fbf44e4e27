/**
 * Differences between providers of the same protocol. `docs/guides/model-providers.md` gives the source of each preset's settings.
 *
 * PROFILES-1 A preset has a value for every setting; settings in the file override it.
 * PROFILES-2 Without a preset, the host decides if it is a known provider's; else `compatible`.
 */

export const OTHER_AGENTS = ['system', 'user'] as const;
export const INSTRUCTIONS = ['system', 'developer'] as const;
export const SEND_REASONING = ['never', 'with-calls', 'always'] as const;
export const CALL_IDS = ['plain', 'nine'] as const;
export const EMPTY_ANSWERS = ['sent', 'left-out'] as const;
export const AFTER_RESULTS = ['anything', 'assistant'] as const;
export const UNSIGNED_CALLS = ['plain', 'marked'] as const;
export const OUTPUT_LIMITS = ['max_tokens', 'max_completion_tokens'] as const;

export interface ProfileSettings {
  /** The role of other agents' messages. */
  readonly otherAgentsAs: (typeof OTHER_AGENTS)[number];
  /** The role of instructions. */
  readonly instructionsAs: (typeof INSTRUCTIONS)[number];
  /** Neighbours of one role are sent as one message. */
  readonly mergeMessages: boolean;
  /** Which of an agent's own messages carry `reasoning_content`. */
  readonly sendReasoning: (typeof SEND_REASONING)[number];
  /** `nine`: nine letters and digits. */
  readonly callIds: (typeof CALL_IDS)[number];
  /** What happens to own messages without text and calls. */
  readonly emptyAnswers: (typeof EMPTY_ANSWERS)[number];
  /** `assistant`: a short answer is inserted between a tool's result and messages of others. */
  readonly afterResults: (typeof AFTER_RESULTS)[number];
  /** `marked`: a call without a signature has the value that skips the check of signatures. */
  readonly unsignedCalls: (typeof UNSIGNED_CALLS)[number];
  /** The field that limits the answer. */
  readonly outputLimit: (typeof OUTPUT_LIMITS)[number];
  /** False: requests at most one call per answer. */
  readonly parallelToolCalls: boolean;
  /** Tools whose schema allows it are sent with `strict: true`. */
  readonly strictTools: boolean;
  /** False: the answer arrives at once. */
  readonly stream: boolean;
  /** Requests the usage of streams (`stream_options`). */
  readonly streamUsage: boolean;
}

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
  stream: true,
  streamUsage: true,
};

/** The model's chat template decides: the strictest require one system message, then alternating roles. */
const BY_TEMPLATE: ProfileSettings = {
  ...COMPATIBLE,
  otherAgentsAs: 'user',
  mergeMessages: true,
};

export const PRESETS = {
  compatible: COMPATIBLE,
  openai: { ...COMPATIBLE, instructionsAs: 'developer', outputLimit: 'max_completion_tokens' },
  anthropic: { ...COMPATIBLE, otherAgentsAs: 'user', mergeMessages: true, emptyAnswers: 'left-out' },
  gemini: {
    ...COMPATIBLE,
    otherAgentsAs: 'user',
    mergeMessages: true,
    emptyAnswers: 'left-out',
    afterResults: 'assistant',
    unsignedCalls: 'marked',
  },
  mistral: {
    ...COMPATIBLE,
    otherAgentsAs: 'user',
    mergeMessages: true,
    callIds: 'nine',
    emptyAnswers: 'left-out',
    afterResults: 'assistant',
    streamUsage: false,
  },
  deepseek: { ...COMPATIBLE, sendReasoning: 'with-calls', emptyAnswers: 'left-out' },
  kimi: { ...COMPATIBLE, sendReasoning: 'with-calls', emptyAnswers: 'left-out' },
  qwen: BY_TEMPLATE,
  vllm: BY_TEMPLATE,
  ollama: BY_TEMPLATE,
  llamacpp: BY_TEMPLATE,
} as const satisfies Readonly<Record<string, ProfileSettings>>;

export type PresetName = keyof typeof PRESETS;
export const PRESET_NAMES = Object.keys(PRESETS) as [PresetName, ...PresetName[]];

const PRESET_OF_HOST: Readonly<Record<string, PresetName>> = {
  'api.openai.com': 'openai',
  'api.anthropic.com': 'anthropic',
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

type ProfileKeys = { readonly [K in keyof ProfileSettings]?: ProfileSettings[K] | undefined };

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
