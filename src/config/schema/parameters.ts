import { z } from 'zod';

/**
 * The parameters of a model's requests, which a model and an agent can set.
 *
 * PARAMETERS-1 `extraBody` and `headers` cannot replace what requests already use, nor a field that has a key of its own.
 * PARAMETERS-2 The value of a header may be a secret: it is never shown. Everything else is shown.
 */

export const bool = z.boolean();
export const count = z.int().min(1);
export const positive = z.number().positive();
export const text = z.string().min(1);
export const texts = z.array(text);
export const matching = (pattern: RegExp, form: string) => z.string().regex(pattern, form);
/** A group of keys that may be left out: each has a default, or is optional. */
export function section<Shape extends z.ZodRawShape>(about: string, shape: Shape) {
  const nothing = {} as z.input<z.ZodObject<Shape>>;
  return z.strictObject(shape).prefault(nothing).describe(about);
}
export const httpUrl = z.url({ protocol: /^https?$/, error: 'a URL that begins with http:// or https://' });

/** A token of RFC 9110. */
const HEADER_PATTERN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE_PATTERN = /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/;
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
  'input',
  'instructions',
  'max_completion_tokens',
  'max_output_tokens',
  'max_tokens',
  'messages',
  'model',
  'n',
  'parallel_tool_calls',
  'previous_response_id',
  'stream',
  'stream_options',
  'system',
  'tool_choice',
  'tools',
];
/** Fields of the body that have a key of their own. */
const FIELD_OF_PARAMETER = {
  temperature: 'temperature',
  topP: 'top_p',
  reasoningEffort: 'reasoning_effort',
  stop: 'stop',
  seed: 'seed',
} as const;

export const KEY_HEADER = 'a header that requests do not use already (a key belongs in apiKey)';

export const headerName = matching(
  HEADER_PATTERN,
  "a header's name: letters, digits and any of !#$%&'*+.^_`|~-",
).refine((name) => !USED_HEADERS.includes(name.toLowerCase()), KEY_HEADER);

export const fieldName = text
  .refine((name) => !USED_FIELDS.includes(name), 'a field that requests do not use already')
  .refine((name) => keyOfField(name) === undefined, {
    error: ({ input }) => `a field without a key of its own (use ${keyOfField(String(input))})`,
  });

function keyOfField(field: string): string | undefined {
  return Object.entries(FIELD_OF_PARAMETER).find(([, one]) => one === field)?.[0];
}

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

export const parameterKeys = {
  temperature: z
    .number()
    .min(0)
    .max(2)
    .optional()
    .describe('Randomness of the answer, 0 to 2 (default: not sent)'),
  topP: z
    .number()
    .min(0)
    .max(1)
    .optional()
    .describe('Share of the probability that tokens are drawn from, sent as top_p (default: not sent)'),
  reasoningEffort: z
    .enum(EFFORTS)
    .optional()
    .describe(
      'How long the model reasons, sent as reasoning_effort; to anthropic as output_config.effort, to responses as reasoning.effort (default: not sent)',
    ),
  reasoningTokens: z
    .int()
    .min(1_024)
    .optional()
    .describe(
      'Only anthropic: tokens for reasoning, part of maxOutputTokens, sent as thinking.budget_tokens (default: not sent)',
    ),
  stop: z
    .union([text, texts.min(1).max(16)])
    .optional()
    .describe('A text, or a list of texts, at which the answer ends (default: not sent)'),
  seed: z
    .int()
    .optional()
    .describe('Number for repeatable answers, where the provider supports it (default: not sent)'),
  extraBody: z
    .record(
      fieldName,
      z.unknown().refine((value) => isPlainJson(value), 'a value that JSON can represent'),
    )
    .optional()
    .describe('Further fields at the top of the request body. Shown by explain: no secrets (default: none)'),
  headers: z
    .record(headerName, matching(HEADER_VALUE_PATTERN, 'one line of ASCII without blanks at its ends'))
    .refine((headers) => new Set(lowerCased(headers)).size === Object.keys(headers).length, {
      error: 'each header once (upper and lower case are equal)',
    })
    .optional()
    .describe(
      `Further headers of the request. Values are never shown; write secrets as \${NAME} (default: none)`,
    ),
};

export const agentParameters = z.strictObject({
  ...parameterKeys,
  maxOutputTokens: count
    .optional()
    .describe(
      "At most so many tokens per answer, less than the model's contextTokens (default: the model's)",
    ),
});

export type ParameterKeys = Pick<z.infer<typeof agentParameters>, keyof typeof parameterKeys>;
export type AgentParameterKeys = z.infer<typeof agentParameters>;

/** Paths of parameters that have the name by which the session is sent. */
export function sessionClashes(
  { headers = {}, extraBody = {} }: { readonly headers?: object; readonly extraBody?: object },
  { header, field }: { readonly header?: string | undefined; readonly field?: string | undefined },
): [key: 'headers' | 'extraBody', name: string][] {
  const headerNames = Object.keys(headers).filter((name) => name.toLowerCase() === header?.toLowerCase());
  const fieldNames = Object.keys(extraBody).filter((name) => name === field);
  return [
    ...headerNames.map((name): ['headers', string] => ['headers', name]),
    ...fieldNames.map((name): ['extraBody', string] => ['extraBody', name]),
  ];
}

function lowerCased(headers: Readonly<Record<string, string>>): string[] {
  return Object.keys(headers).map((name) => name.toLowerCase());
}

/** YAML has numbers that JSON has not. */
function isPlainJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isPlainJson);
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isPlainJson);
  return value === null || typeof value === 'string' || typeof value === 'boolean';
}
