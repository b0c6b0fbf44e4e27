import { z } from 'zod';
import { count, fieldName, headerName, parameterKeys, sessionClashes } from './parameters.ts';
import { PRESET_NAMES, profileKeys } from './profiles.ts';

/** The shape of one model under `models` of `parley.yaml` (SCHEMA-1, SCHEMA-2). */

const DEFAULT_CONTEXT_TOKENS = 128_000;
export const DEFAULT_MAX_OUTPUT_TOKENS = 4_096;
export const DEFAULT_FIRST_TOKEN_SECONDS = 300;
export const DEFAULT_IDLE_SECONDS = 120;
export const DEFAULT_MODEL = 'gpt-5-mini';

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
    outputPerMillion: z.number().nonnegative().describe('USD per million output tokens'),
  })
  .describe('What the model costs; without it no cost is counted');

const session = z
  .strictObject({
    header: headerName.optional().describe('Name of the header that contains the session'),
    field: fieldName
      .optional()
      .describe('Name of the top-level field of the request that contains the session'),
  })
  .refine((value) => (value.header === undefined) !== (value.field === undefined), 'either header or field')
  .describe("How the agent's session is sent to the provider: as header or as field (default: not sent)");

/** Keys that only one provider supports. */
const KEYS_OF_PROVIDER = {
  openai: [
    'baseURL',
    'apiKey',
    'session',
    'profile',
    'firstTokenSeconds',
    'idleSeconds',
    ...(Object.keys(parameterKeys) as (keyof typeof parameterKeys)[]),
    ...(Object.keys(profileKeys) as (keyof typeof profileKeys)[]).filter((key) => key !== 'otherAgentsAs'),
  ],
  scripted: ['script'],
} as const;

export const modelFileSchema = z
  .strictObject({
    provider: z
      .enum(['openai', 'scripted'], {
        error:
          'one of openai, scripted; openai is the protocol: reach other vendors by their endpoint for it (baseURL), which docs/guides/model-providers.md lists',
      })
      .optional()
      .describe(
        "openai: any endpoint with that protocol. scripted: offline and deterministic (default: openai; with a script and without a key for OpenAI's endpoint, scripted)",
      ),
    baseURL: z
      .url({ protocol: /^https?$/, error: 'a URL that begins with http:// or https://' })
      .refine(
        (value) => !/^\w+:\/\/[^/]*@/.test(value),
        'a URL without user and password: put a key into apiKey',
      )
      .optional()
      .describe(
        'URL of the endpoint, with its version (default: OPENAI_BASE_URL, else https://api.openai.com/v1)',
      ),
    apiKey: z
      .string()
      .min(1)
      .optional()
      .describe(
        `By reference to a variable: \${OPENAI_API_KEY} (default: OPENAI_API_KEY if baseURL is not set, else none)`,
      ),
    model: z
      .string()
      .min(1)
      .optional()
      .describe(`Name of the model at the provider (default: ${DEFAULT_MODEL})`),
    script: z
      .string()
      .min(1)
      .optional()
      .describe('A YAML file of rules for scripted, relative to this folder (default: the built-in team)'),
    contextTokens: count.default(DEFAULT_CONTEXT_TOKENS).describe('Context window of the model, in tokens'),
    maxOutputTokens: count
      .optional()
      .describe(
        `Part of the window that is reserved for the answer (default: ${DEFAULT_MAX_OUTPUT_TOKENS}, or a quarter of a smaller window)`,
      ),
    firstTokenSeconds: z
      .number()
      .positive()
      .optional()
      .describe(
        `Time limit for the first part of an answer; with stream: false of the whole answer (default: ${DEFAULT_FIRST_TOKEN_SECONDS}; with stream: false only limits.turnSeconds)`,
      ),
    idleSeconds: z
      .number()
      .positive()
      .optional()
      .describe(`Time limit for each next part of an answer (default: ${DEFAULT_IDLE_SECONDS})`),
    profile: z
      .enum(PRESET_NAMES)
      .optional()
      .describe('Preset for the provider (default: by the host of baseURL, else compatible)'),
    ...parameterKeys,
    ...profileKeys,
    price: price.optional(),
    session: session.optional(),
  })
  .superRefine((model, context) => {
    const other = model.provider === 'scripted' ? 'openai' : 'scripted';
    // MODELS-3: a script is for the time without a key.
    const chosenBy = (['provider', 'baseURL', 'apiKey'] as const).find((key) => model[key] !== undefined);
    for (const key of chosenBy ? KEYS_OF_PROVIDER[other] : []) {
      if (model[key] === undefined) continue;
      const message = `nothing: provider ${model.provider ?? 'openai'} has no ${key} (${other} has); remove ${key}, or ${chosenBy}`;
      context.addIssue({ code: 'custom', path: [key], message });
    }
    for (const path of model.session ? sessionClashes(model, model.session) : []) {
      const message = 'another name: session uses this one';
      context.addIssue({ code: 'custom', path: [...path], message });
    }
    if (model.maxOutputTokens !== undefined && model.maxOutputTokens >= model.contextTokens) {
      const message = `less than contextTokens (${model.contextTokens})`;
      context.addIssue({ code: 'custom', path: ['maxOutputTokens'], message });
    }
  });
export type ModelFile = z.infer<typeof modelFileSchema>;
