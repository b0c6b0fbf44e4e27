import { z } from 'zod';

/** A scripted model's script: rules, of which the first that fits answers (docs/configuration.md). */

const condition = z.strictObject({
  /** Slug of the agent that is asked. */
  agent: z.string().optional(),
  /** The mode that the request's banner names. */
  mode: z.enum(['chat', 'agent', 'run']).optional(),
  /** The tool whose result is the last message. */
  tool: z.string().optional(),
  /** Contained in the last message, or `/a regular expression/i`. */
  last: z.string().optional(),
  /** Which use of the rule: see `choose.ts`. */
  n: z.int().nonnegative().optional(),
});

const toolCall = z.strictObject({
  name: z.string().min(1),
  arguments: z.record(z.string(), z.unknown()).default({}),
});

const failure = z.strictObject({
  code: z.string().min(1).optional(),
  message: z.string().optional(),
  /** The HTTP status that it stands for. */
  status: z.int().min(400).max(599).optional(),
  /** Whether the text is streamed first. Default: if there is any. */
  afterText: z.boolean().optional(),
});

const reply = z
  .strictObject({
    text: z.string().default(''),
    tool_calls: z.array(toolCall).default([]),
    /** Between two pieces of the answer. Milliseconds. */
    delayMs: z.number().nonnegative().max(3_600_000).default(0),
    error: failure.nullish(),
    /** Default: `tool_calls` where there are some, else `stop`. */
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

/** What `last` looks for, compiled. */
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
  /** Where it stands, for messages. */
  readonly file: string;
  readonly rules: readonly Rule[];
}
