import type { Usage } from '../../conversation/index.ts';
import { cut } from '../../kernel/index.ts';

/** Helpers for JSON of unknown shape. */
export type JsonRecord = Readonly<Record<string, unknown>>;

/** Undefined: it is not JSON. */
export function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Characters of an error text that are processed: it may have many megabytes. */
export const LONGEST_SEARCHED = 20_000;

/** One line of at most `length` characters, for an error message. */
export function excerpt(text: string, length = 300): string {
  const start = text.slice(0, LONGEST_SEARCHED);
  const line = start.replaceAll(/\s+/g, ' ').trim();
  return line.length <= length && start === text ? line : `${cut(line, length)}…`;
}

/** A message with tool calls may have no content, or null. */
export function isContent(content: unknown): boolean {
  return (content ?? null) === null || typeof content === 'string' || Array.isArray(content);
}

/** Content is a string or a list of parts, some of them reasoning. */
export function partsOf(content: unknown): { text: string; reasoning: string } {
  if (!Array.isArray(content)) return { text: stringOf(content), reasoning: '' };
  const parts = content.filter(isRecord);
  const thoughts = parts.flatMap((part) =>
    Array.isArray(part.thinking) ? part.thinking.filter(isRecord) : [],
  );
  return {
    text: parts.map((part) => stringOf(part.text)).join(''),
    reasoning: thoughts.map((thought) => stringOf(thought.text)).join(''),
  };
}

/** Drops impossible counts: they would corrupt the sums and limits of the conversation. */
export function usageOf(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const { prompt_tokens: input, completion_tokens: said, total_tokens: total } = usage;
  const { prompt_tokens_details: details } = usage;
  const completion = isCount(said) ? said : 0;
  // Servers that do not count report zero; no request is empty.
  if (!isCount(input) || (input === 0 && completion === 0)) return undefined;
  // Some providers leave the tokens of the reasoning out of the completion, and charge them.
  const output = isCount(total) ? Math.max(completion, total - input) : completion;
  const cached = isRecord(details) ? details.cached_tokens : undefined;
  return {
    inputTokens: input,
    ...(isCount(cached) ? { cachedInputTokens: Math.min(cached, input) } : {}),
    outputTokens: output,
  };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
