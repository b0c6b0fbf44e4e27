import { z } from 'zod';
import {
  AFTER_RESULTS,
  CALL_IDS,
  EMPTY_ANSWERS,
  INSTRUCTIONS,
  OTHER_AGENTS,
  OUTPUT_LIMITS,
  PRESET_NAMES,
  type ProfileSettings,
  SEND_REASONING,
} from './profiles.ts';

/** The shape of one model under `models` of `parley.yaml` (SCHEMA-1, SCHEMA-2). */

const DEFAULT_CONTEXT_TOKENS = 128_000;
export const DEFAULT_MAX_OUTPUT_TOKENS = 4_096;
export const DEFAULT_MODEL = 'gpt-5-mini';

export const count = z.int().min(1);

const price = z
  .strictObject({
    inputPerMillion: z.number().nonnegative().describe('USD per million input tokens'),
    cachedInputPerMillion: z
      .number()
      .nonnegative()
      .optional()
      .describe('USD per million input tokens that the provider had cached (default: as inputPerMillion)'),
    outputPerMillion: z.number().nonnegative().describe('USD per million output tokens'),
  })
  .describe('What the model costs; without it no money is counted');

/** A token of RFC 9110. */
const HEADER_PATTERN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Headers that requests already use, or that belong to the connection. */
const USED_HEADERS: readonly string[] = [
  'accept',
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'expect',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
];
/** Fields that bodies already use, or that would change the form of the answer. */
const USED_FIELDS: readonly string[] = [
  'max_completion_tokens',
  'max_tokens',
  'messages',
  'model',
  'n',
  'parallel_tool_calls',
  'stream',
  'stream_options',
  'tool_choice',
  'tools',
];

const session = z
  .strictObject({
    header: z
      .string()
      .regex(HEADER_PATTERN, "a header's name: letters, digits and any of !#$%&'*+.^_`|~-")
      .refine(
        (name) => !USED_HEADERS.includes(name.toLowerCase()),
        'a header that requests do not use already',
      )
      .optional()
      .describe('Name of the header that carries it'),
    field: z
      .string()
      .min(1)
      .refine((name) => !USED_FIELDS.includes(name), 'a field that requests do not use already')
      .optional()
      .describe("Name of the field, at the top of the request's JSON, that carries it"),
  })
  .refine((value) => (value.header === undefined) !== (value.field === undefined), 'either header or field')
  .describe("How the agent's session is sent to the model (default: not at all)");

/** Overrides of the preset's settings. No defaults: the preset has them (PROFILES-1). */
const profileKeys = {
  otherAgentsAs: z
    .enum(OTHER_AGENTS)
    .optional()
    .describe(
      "The role that carries other agents' words; user for providers that refuse late system messages (default: the profile's)",
    ),
  instructionsAs: z
    .enum(INSTRUCTIONS)
    .optional()
    .describe("The role that carries instructions (default: the profile's)"),
  mergeMessages: z
    .boolean()
    .optional()
    .describe("true: neighbours of one role are sent as one message (default: the profile's)"),
  sendReasoning: z
    .enum(SEND_REASONING)
    .optional()
    .describe("Which of an agent's own messages include reasoning_content (default: the profile's)"),
  callIds: z
    .enum(CALL_IDS)
    .optional()
    .describe("nine: ids of calls are nine letters and digits (default: the profile's)"),
  emptyAnswers: z
    .enum(EMPTY_ANSWERS)
    .optional()
    .describe("What happens to an agent's own messages without text and calls (default: the profile's)"),
  afterResults: z
    .enum(AFTER_RESULTS)
    .optional()
    .describe(
      "assistant: a tool's result is never directly followed by a message of others (default: the profile's)",
    ),
  outputLimit: z
    .enum(OUTPUT_LIMITS)
    .optional()
    .describe("The field that limits the answer (default: the profile's)"),
  parallelToolCalls: z
    .boolean()
    .optional()
    .describe("false: at most one call per answer is asked for (default: the profile's)"),
  strictTools: z
    .boolean()
    .optional()
    .describe("true: tools whose schema allows it are sent as strict (default: the profile's)"),
  stream: z
    .boolean()
    .optional()
    .describe("false: the answer arrives at once, not as a stream (default: the profile's)"),
  streamUsage: z
    .boolean()
    .optional()
    .describe("false: streams are not asked for their usage (default: the profile's)"),
} satisfies Readonly<Record<keyof ProfileSettings, z.ZodType>>;

/** Keys that only one provider supports. */
const KEYS_OF_PROVIDER = {
  openai: [
    'baseURL',
    'apiKey',
    'session',
    'profile',
    ...(Object.keys(profileKeys) as (keyof ProfileSettings)[]).filter((key) => key !== 'otherAgentsAs'),
  ],
  scripted: ['script'],
} as const;

export const modelFileSchema = z
  .strictObject({
    provider: z
      .enum(['openai', 'scripted'])
      .default('openai')
      .describe('openai: any compatible endpoint. scripted: the offline model, deterministic'),
    baseURL: z
      .url({ protocol: /^https?$/, error: 'a URL that begins with http:// or https://' })
      .refine(
        (value) => !/^\w+:\/\/[^/]*@/.test(value),
        'a URL without user and password: put a key into apiKey',
      )
      .optional()
      .describe(
        'The URL of the endpoint, with its version (default: OPENAI_BASE_URL, else https://api.openai.com/v1)',
      ),
    apiKey: z
      .string()
      .min(1)
      .optional()
      .describe(
        `Best written as \${OPENAI_API_KEY}. Default: OPENAI_API_KEY if baseURL is not given, else none`,
      ),
    model: z
      .string()
      .min(1)
      .optional()
      .describe(`The model's name at its provider (default: ${DEFAULT_MODEL})`),
    script: z
      .string()
      .min(1)
      .optional()
      .describe('scripted only: a YAML file of rules, relative to this folder (default: the built-in one)'),
    contextTokens: count.default(DEFAULT_CONTEXT_TOKENS).describe("The model's window, in tokens"),
    maxOutputTokens: count
      .optional()
      .describe(
        `At most so many tokens per answer (default: ${DEFAULT_MAX_OUTPUT_TOKENS}, or a quarter of a small window)`,
      ),
    profile: z
      .enum(PRESET_NAMES)
      .optional()
      .describe('Settings for the provider (default: by the host of baseURL, else compatible)'),
    ...profileKeys,
    price: price.optional(),
    session: session.optional(),
  })
  .superRefine((model, context) => {
    const other = model.provider === 'openai' ? 'scripted' : 'openai';
    for (const key of KEYS_OF_PROVIDER[other]) {
      if (model[key] === undefined) continue;
      const message = `nothing: provider ${model.provider} has no ${key} (${other} has)`;
      context.addIssue({ code: 'custom', path: [key], message });
    }
    if (model.maxOutputTokens !== undefined && model.maxOutputTokens >= model.contextTokens) {
      const message = `less than contextTokens (${model.contextTokens})`;
      context.addIssue({ code: 'custom', path: ['maxOutputTokens'], message });
    }
  });
export type ModelFile = z.infer<typeof modelFileSchema>;
