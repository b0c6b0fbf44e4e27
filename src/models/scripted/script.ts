import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import { z } from 'zod';
import {
  expectationOf,
  isShallow,
  MAX_DEPTH,
  messageOf,
  PACKAGE,
  ParleyError,
  shown,
  valueAt,
} from '../../kernel/index.ts';

/** The script of a scripted model: a list of rules, the first match answers (docs/guides/model-providers.md). */

/** The compiled condition `last`. */
type LastPattern = { readonly text: string } | { readonly expression: RegExp };

/** `/…/flags` is a regular expression, anything else a substring. */
const lastPattern = z.string().transform((last, context): LastPattern => {
  const [, source, flags] = /^\/(.+)\/([dgimsuvy]*)$/s.exec(last) ?? [];
  if (source === undefined || flags === undefined) return { text: last };
  try {
    // The flags g and y would keep state between matches.
    return { expression: new RegExp(source, flags.replaceAll(/[gy]/g, '')) };
  } catch (error) {
    context.addIssue({ code: 'custom', message: `a valid regular expression (${messageOf(error)})` });
    return z.NEVER;
  }
});

const condition = z.strictObject({
  /** Slug of the agent that is asked. */
  agent: z.string().optional(),
  /** The mode that the request's banner names. */
  mode: z.enum(['chat', 'agent', 'run']).optional(),
  /** The tool whose result is the last message. */
  tool: z.string().optional(),
  /** Contained in the last message, or `/a regular expression/i`. */
  last: lastPattern.optional(),
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

export type ReplyData = z.infer<typeof reply>;

const rule = z
  .strictObject({ when: condition.optional(), reply })
  .superRefine(({ when, reply: given }, context) => {
    const known = ['last', 'agent', 'conversation', 'n', ...groupsOf(when?.last)];
    for (const name of placeholdersOf(given)) {
      if (known.includes(name)) continue;
      const message = `one of ${known.map((key) => `{{${key}}}`).join(', ')} instead of {{${name}}}`;
      context.addIssue({ code: 'custom', path: ['reply'], message });
    }
  })
  .transform(({ when, reply: given }) => ({ ...when, reply: given }));
export type Rule = z.infer<typeof rule>;

export const scriptSchema = z.strictObject({ rules: z.array(rule).min(1) });

export interface Script {
  /** Path, for error messages. */
  readonly file: string;
  readonly rules: readonly Rule[];
}

/** The groups of an expression: made to match the empty string, its result has one slot for each. */
function groupsOf(pattern: LastPattern | undefined): string[] {
  if (!pattern || 'text' in pattern) return [];
  const { source, flags } = pattern.expression;
  return [...(new RegExp(`${source}|`, flags).exec('') ?? []).keys()].map(String);
}

/** The default script, shipped with Parley: answers without an API key. */
const DEFAULT_SCRIPT = join(PACKAGE, 'config/scripts/team.yaml');

/** Reads a script, by default the built-in one. Throws `CONFIG_INVALID` with file, key, value and expectation. */
export async function loadScript(file = DEFAULT_SCRIPT): Promise<Script> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new ParleyError('CONFIG_INVALID', `the script ${file} cannot be read: ${messageOf(cause)}`, {
      hint: 'models.<name>.script is a YAML file, relative to the folder of the configuration',
      cause,
    });
  });
  return parseScript(file, text);
}

export function parseScript(file: string, text: string): Script {
  const data = parseYaml(file, text);
  const parsed = scriptSchema.safeParse(data);
  if (parsed.success) return { file, rules: parsed.data.rules };
  throw invalid(
    parsed.error.issues.flatMap((issue) => {
      if (issue.code !== 'unrecognized_keys')
        return problem(file, issue.path, shown(valueAt(data, issue.path)), expectationOf(issue));
      const expected = 'see the rules of a scripted model in docs/guides/model-providers.md';
      return issue.keys.map((key) =>
        problem(file, [...issue.path, key], 'a key that is not known here', expected),
      );
    }),
  );
}

function parseYaml(file: string, text: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0]);
    throw invalid([problem(`${file}:${line}:${col}`, [], error.message, 'valid YAML')]);
  }
  let data: unknown;
  try {
    data = document.toJS();
  } catch (cause) {
    throw invalid([problem(file, [], messageOf(cause), 'valid YAML')]);
  }
  if (isShallow(data)) return data;
  throw invalid([problem(file, [], `nested deeper than ${MAX_DEPTH} levels, or within itself`, 'rules')]);
}

/** The key is written as `rules[0].when.last`. */
function problem(file: string, path: readonly PropertyKey[], seen: string, expected: string): string {
  const key = path
    .map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at === 0 ? ': ' : '.'}${String(part)}`))
    .join('');
  return `- ${file}${key}\n    seen:     ${seen}\n    expected: ${expected}`;
}

function invalid(problems: readonly string[]): ParleyError {
  const message = ['the script of a scripted model is not valid', ...problems].join('\n');
  return new ParleyError('CONFIG_INVALID', message, { hint: 'correct what is listed and start again' });
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
function placeholdersOf(reply: ReplyData): string[] {
  if (reply.verbatim) return [];
  const written = JSON.stringify([reply.text, reply.error?.message ?? '', reply.tool_calls]);
  return [...written.matchAll(PLACEHOLDER)].flatMap((match) => match[1] ?? []);
}
