import { z } from 'zod';

/** The script of a scripted model: a list of rules, the first match answers (docs/guides/model-providers.md). */

const condition = z.strictObject({
  /** Slug of the agent that is asked. */
  agent: z.string().optional(),
  /** The mode that the request's banner names. */
  mode: z.enum(['chat', 'agent', 'run']).optional(),
  /** The tool whose result is the last message. */
  tool: z.string().optional(),
  /** Contained in the last message, or `/a regular expression/i`. */
  last: z.string().optional(),
  /** The ordinal of the use: see CHOOSE-2. */
  n: z.int().nonnegative().optional(),
});

const toolCall = z.strictObject({
  name: z.string().min(1),
  /** A text is sent as it is, also if it is no JSON. */
  arguments: z.union([z.record(z.string(), z.unknown()), z.string()]).default({}),
});

const failure = z.strictObject({
  code: z.string().min(1).optional(),
  message: z.string().optional(),
  /** The HTTP status of the simulated error. */
  status: z.int().min(400).max(599).optional(),
  /** Whether the text is streamed first. Default: if there is text. */
  afterText: z.boolean().optional(),
});

const reply = z
  .strictObject({
    text: z.string().default(''),
    tool_calls: z.array(toolCall).default([]),
    /** `{{…}}` is text, not a placeholder. */
    verbatim: z.boolean().default(false),
    /** Delay between two deltas. Milliseconds. */
    delayMs: z.number().nonnegative().max(3_600_000).default(0),
    error: failure.nullish(),
    /** Default: `tool_calls` if there are any, else `stop`. */
    finishReason: z.string().min(1).optional(),
  })
  .refine(
    ({ text, tool_calls: calls, error, finishReason }) => {
      return text !== '' || calls.length > 0 || error || finishReason !== undefined;
    },
    { error: 'a text, tool_calls, an error or a finishReason' },
  );

export const scriptSchema = z.strictObject({
  rules: z.array(z.strictObject({ when: condition.optional(), reply })).min(1),
});

export type ScriptData = z.infer<typeof scriptSchema>;
export type ReplyData = z.infer<typeof reply>;

/** The compiled condition `last`. */
export type LastPattern = { readonly text: string } | { readonly expression: RegExp };

export interface Rule {
  readonly agent: string | undefined;
  readonly mode: string | undefined;
  readonly tool: string | undefined;
  readonly last: LastPattern | undefined;
  readonly n: number | undefined;
  readonly reply: ReplyData;
}

export interface Script {
  /** Path, for error messages. */
  readonly file: string;
  readonly rules: readonly Rule[];
}

/** Values for the placeholders of a reply: `{{last}}`, `{{agent}}`, `{{conversation}}`, `{{n}}`, `{{1}}`. */
export type Values = Readonly<Record<string, string>>;

const PLACEHOLDER = /\{\{\s*(\w+)\s*\}\}/g;

/** Fills placeholders in one pass: placeholders in inserted values stay as they are. */
function fill(template: string, values: Values): string {
  return template.replaceAll(PLACEHOLDER, (_, name: string) => values[name] ?? '');
}

/** Fills JSON text. A value within a string is escaped; a number can be written without quotes: `{"euros":{{1}}}`. */
export function fillJson(template: string, values: Values): string {
  const escaped = Object.entries(values).map(([name, value]) => [name, JSON.stringify(value).slice(1, -1)]);
  return fill(template, Object.fromEntries(escaped));
}

/** Fills every string within a JSON value. */
export function fillDeep(value: unknown, values: Values): unknown {
  if (typeof value === 'string') return fill(value, values);
  if (Array.isArray(value)) return value.map((item) => fillDeep(item, values));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillDeep(item, values)]));
}

/** The placeholder names that a reply uses. */
export function placeholdersOf(reply: ReplyData): string[] {
  if (reply.verbatim) return [];
  const written = JSON.stringify([reply.text, reply.error?.message ?? '', reply.tool_calls]);
  return [...written.matchAll(PLACEHOLDER)].flatMap((match) => match[1] ?? []);
}
