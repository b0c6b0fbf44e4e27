import type { CallPlace, Entry, MessageEntry } from '../../../conversation/index.ts';
import { askedIn } from '../../../conversation/progress/open-calls.ts';
import { canonicalArguments } from '../../../kernel/hidden.ts';

/** Tool calls of messages, their approvals and results, and the questions among them. */

export type Calls = readonly Call[];

/** A tool call and its outcome. */
export interface Call {
  readonly place: CallPlace;
  readonly id: string;
  readonly tool: string;
  /** As it runs (HIDDEN-4). */
  readonly arguments: string;
  readonly status: 'asked' | 'running' | 'done';
  readonly startedAt: string | null;
  readonly approval: Approval | null;
  readonly result: CallResult | null;
  /** Another entry shows it (a handoff, a delegation), so it needs no row. */
  readonly isTold: boolean;
}

export interface CallResult {
  readonly index: number;
  readonly content: string;
  /** The author of the message that is the result; null: no message is. */
  readonly by: string | null;
  readonly at: string;
  /** Milliseconds. */
  readonly duration: number | null;
  readonly fullOutputPath: string | null;
}

export interface Approval {
  readonly approvalId: string;
  readonly index: number;
  readonly risk: string;
  readonly why: string | null;
  /** It was running when the daemon died, so it may have taken effect. */
  readonly mayHaveRun: boolean;
  /** Null while it is pending. */
  readonly answer: string | null;
  readonly by: string | null;
  readonly reason: string | null;
}

export interface Question {
  readonly call: Call;
  readonly agent: string;
  readonly question: string;
  readonly options: readonly string[];
}

export function callsOf(entry: MessageEntry): Calls {
  return (entry.tool_calls ?? []).map(({ id, function: { name, arguments: text } }, position) => ({
    place: { index: entry.index, position },
    id,
    tool: name,
    arguments: canonicalArguments(text),
    status: 'asked',
    startedAt: null,
    approval: null,
    result: null,
    isTold: false,
  }));
}

/** The question that an agent asks with this call; null: the call is not a question. */
export function questionOf(call: Call, agent: string): Question | null {
  if (call.tool !== 'ask') return null;
  const { question, options } = askedIn(call.arguments) ?? { question: '', options: [] };
  return { call, agent, question, options };
}

/** Empty if the model did not write a JSON object. */
export function argumentsOf(call: Call): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(call.arguments);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

export function resultOf(entry: MessageEntry, entries: readonly Entry[]): CallResult {
  const { index, content, createdAt: at, duration = null, fullOutputPath = null } = entry;
  const answer = entries[entry.answers?.[0] ?? -1];
  return { index, content: content ?? '', at, duration, fullOutputPath, by: answer?.author.name ?? null };
}
