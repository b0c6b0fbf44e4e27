import { cut, type JsonRecord } from '../../kernel/index.ts';
import type { Block, Blocks, Entry, OpaqueFields, ReportedCall } from './entry.ts';

/** One block of an answer, in the order in which the model wrote it. */
export type AnswerBlock =
  | { readonly type: 'text' | 'reasoning'; readonly text: string; readonly opaque?: OpaqueFields }
  | { readonly type: 'call'; readonly position: number; readonly opaque?: OpaqueFields }
  /** An item that only its model understands. */
  | { readonly type: 'opaque'; readonly opaque: OpaqueFields };

interface Answered {
  readonly content: string | null;
  readonly reasoning?: string | undefined;
  readonly tool_calls?: readonly unknown[] | undefined;
  readonly blocks?: Blocks | undefined;
}

/**
 * The blocks of an answer. `reader`: the dialect and model that they are sent to, or undefined. Only the one that wrote them gets
 * their order and what is opaque in them; everyone else reads one block of reasoning, one of text, and the calls. So does an
 * answer whose texts were shortened since, as its signatures no longer fit.
 */
export function blocksOf(answer: Answered, reader: string | undefined): readonly AnswerBlock[] {
  const { blocks } = answer;
  const list = reader !== undefined && blocks?.boundTo === reader ? (blocks.list ?? []) : [];
  return orderedBlocks(answer, list) ?? plainBlocks(answer, []);
}

/** What the list does not name: reasoning and text come first, calls last. */
function plainBlocks(
  { content, reasoning, tool_calls: calls = [] }: Answered,
  list: readonly Block[],
  between: readonly AnswerBlock[] = [],
): readonly AnswerBlock[] {
  const isNamed = (type: Block['type']) => list.some((item) => item.type === type);
  return [
    ...(reasoning && !isNamed('reasoning') ? [{ type: 'reasoning', text: reasoning } as const] : []),
    ...(content && !isNamed('text') ? [{ type: 'text', text: content } as const] : []),
    ...between,
    ...(isNamed('call') ? [] : calls.map((_, position) => ({ type: 'call', position }) as const)),
  ];
}

/** Null: the list does not fit the texts or the calls. */
function orderedBlocks(answer: Answered, list: readonly Block[]): readonly AnswerBlock[] | null {
  const { content, reasoning = '', tool_calls: calls = [] } = answer;
  const whole = { text: content ?? '', reasoning };
  const used = { text: 0, reasoning: 0, call: 0 };
  const named = list.map((item): AnswerBlock => {
    if (item.type === 'opaque') return item;
    const opaque = item.opaque ? { opaque: item.opaque } : {};
    if (item.type === 'call') {
      used.call += 1;
      return { type: 'call', position: used.call - 1, ...opaque };
    }
    const from = used[item.type];
    used[item.type] += item.length;
    return { type: item.type, text: whole[item.type].slice(from, used[item.type]), ...opaque };
  });
  const fits =
    [0, whole.text.length].includes(used.text) &&
    [0, whole.reasoning.length].includes(used.reasoning) &&
    [0, calls.length].includes(used.call);
  return fits ? plainBlocks(answer, list, named) : null;
}

/** UTF-16 units of one text, and of all texts of one answer: an entry must fit into one append of every store. */
const LONGEST_KEPT = 8_000;
const MOST_KEPT = 128_000;

/** The reports of one answer as the log keeps them: later texts are left out where all are too long, never a call. */
export function keptReports(calls: readonly ReportedCall[]): ReportedCall[] {
  let left = MOST_KEPT;
  const kept = (text: string | undefined) => {
    const short = text === undefined ? '' : cut(text, LONGEST_KEPT);
    if (short.length > left) return undefined;
    left -= short.length;
    return text === undefined ? undefined : short;
  };
  return calls.map(({ title, kind, status, arguments: given, result }) => {
    const [keptArguments, keptResult] = [kept(given), kept(result)];
    return {
      title: cut(title, 200),
      kind: cut(kind, 40),
      status: cut(status, 40),
      ...(keptArguments !== undefined && { arguments: keptArguments }),
      ...(keptResult !== undefined && { result: keptResult }),
    };
  });
}

/** Calls that other agents are shown, and UTF-16 units of each result. */
const MOST = 20;
const LONGEST = 2_000;

/**
 * The calls that an agent reports, in words for other agents and for people: its report, which nothing here has checked.
 * `isWhole`: all of it, as a search and `recall` read it.
 */
export function reportedText(calls: readonly ReportedCall[] = [], isWhole = false): string {
  const shown = isWhole ? calls : calls.slice(0, MOST);
  const lines = shown.flatMap(({ title, kind, status, result }) => {
    const line = `(reported call: ${title}; ${kind}, ${status})`;
    return result ? [line, isWhole ? result : cut(result, LONGEST)] : [line];
  });
  const more = calls.length > shown.length ? [`(and ${calls.length - shown.length} more calls)`] : [];
  return [...lines, ...more].join('\n');
}

/**
 * Typed answers: the last message of a turn is JSON that matches a schema.
 *
 * TYPED-1 The schema of a turn is that of the newest entry of its trigger that has one, else that of its agent.
 * TYPED-2 An answer that does not match is kept (`invalid`) and the same turn continues, once; the second one fails the turn.
 * TYPED-3 The daemon checks an answer before it is appended. The log has the value, so that readers check nothing.
 *
 * How an answer compares with the schema of its turn.
 */
export type TypedAnswer =
  | { readonly kind: 'valid'; readonly value: unknown }
  /** `why`: for the model that wrote it. */
  | { readonly kind: 'invalid'; readonly why: string }
  /** The schema itself is at fault, or takes too long: asking again would not help. */
  | { readonly kind: 'unchecked'; readonly why: string };

/** TYPED-1. Undefined: no entry of this trigger has a schema. */
export function askedSchema(entries: readonly Entry[], trigger: readonly number[]): JsonRecord | undefined {
  for (const index of [...trigger].sort((a, b) => b - a)) {
    const schema = schemaIn(entries[index]);
    if (schema) return schema;
  }
  return undefined;
}

export function schemaIn(entry: Entry | undefined): JsonRecord | undefined {
  return entry?.type === 'message' || entry?.type === 'delegation-requested' ? entry.schema : undefined;
}

/** For the agent that answers. The schema is one line: JSON has no line breaks of its own. */
export function schemaWords(schema: JsonRecord): string {
  return `Your last message of this turn must be one JSON value that matches this JSON Schema, without any other text:\n${JSON.stringify(schema)}`;
}
