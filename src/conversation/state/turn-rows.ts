import type { Entry, EntryOf, MessageEntry } from '../log/entry.ts';
import { feedbackIn } from '../log/feedback.ts';
import { NOTHING_USED, type Used, usedWith } from './usage.ts';

/** One turn of a log, for a table. */
export interface TurnRow extends Pick<Used, 'calls' | 'usd' | 'unpricedCalls'> {
  readonly turnId: string;
  readonly agent: string;
  /** Its `turn-started`. */
  readonly index: number;
  /** Its newest answer; null: none yet. */
  readonly answer: number | null;
  /** ISO 8601. */
  readonly startedAt: string;
  /** From its start to its end, waits included; null: it has not ended. */
  readonly ms: number | null;
  /** `running`, `waiting`, or how it ended. */
  readonly outcome: 'running' | EntryOf<'turn-ended'>['outcome'];
  /** The models that answered, or the one that failed to; and the tools that they called. */
  readonly models: readonly string[];
  readonly tools: readonly string[];
  /** How people rated its answers. */
  readonly rated: readonly Rating[];
  /** In and out. */
  readonly tokens: number;
}

type Rating = Exclude<EntryOf<'feedback'>['value'], 'none'>;

/** A row as the log has it: which model a turn asked first is in the definition of its agent. */
export interface FoldedTurn extends TurnRow {
  /** Hash of the newest definition of its agent; null: it has none. */
  readonly definition: string | null;
  /** The models that it asked, as configured, if it asked more than its first one. */
  readonly asked: readonly string[];
}

/** The turns of a log, newest first. Copies (a fork) are not repeated: their own conversation has them. */
export function turnRows(entries: readonly Entry[]): FoldedTurn[] {
  const rows = new Map<string, FoldedTurn>();
  const used = new Map<string, Used>();
  /** The turns whose running call asks a person, by the approval (SERVER-QUESTION-1). */
  const asking = new Map<string, string>();
  for (const entry of entries) {
    const answeredTurn = entry.type === 'approval-answered' ? asking.get(entry.approvalId) : undefined;
    const turnId = entry.turnId ?? answeredTurn ?? '';
    if (entry.copiedFrom !== undefined || turnId === '') continue;
    if (entry.type === 'turn-started' && !rows.has(turnId)) rows.set(turnId, begun(entry));
    const row = rows.get(turnId);
    if (!row) continue;
    used.set(turnId, usedWith(used.get(turnId) ?? NOTHING_USED, entry));
    if (entry.type === 'turn-started')
      rows.set(turnId, { ...row, outcome: 'running', ms: null, definition: entry.definition ?? null });
    if (entry.type === 'attempt-failed') rows.set(turnId, { ...row, asked: askedWith(row, entry) });
    if (entry.type === 'approval-requested' && entry.asks) {
      asking.set(entry.approvalId, turnId);
      rows.set(turnId, { ...row, outcome: 'waiting' });
    }
    const isAnswer = entry.type === 'approval-answered' && asking.delete(entry.approvalId);
    if (isAnswer && ![...asking.values()].includes(turnId)) rows.set(turnId, { ...row, outcome: 'running' });
    if (entry.type === 'turn-ended') rows.set(turnId, { ...row, ...endOf(row, entry) });
    if (entry.type === 'message' && entry.role === 'assistant') rows.set(turnId, answered(row, entry));
  }
  for (const [on, ratings] of feedbackIn(entries)) {
    const row = rows.get(entries[on]?.turnId ?? '');
    if (row) rows.set(row.turnId, { ...row, rated: ratedWith(row, ratings) });
  }
  const finished = [...rows.values()].map((row) => {
    const { calls, inputTokens, outputTokens, usd, unpricedCalls } = used.get(row.turnId) ?? NOTHING_USED;
    return { ...row, calls, tokens: inputTokens + outputTokens, usd, unpricedCalls };
  });
  return finished.reverse();
}

function begun({ turnId, agent, index, createdAt }: EntryOf<'turn-started'>): FoldedTurn {
  const nothing = { calls: 0, usd: 0, unpricedCalls: 0, tokens: 0, models: [], tools: [], rated: [] };
  return {
    turnId,
    agent,
    index,
    answer: null,
    startedAt: createdAt,
    ms: null,
    outcome: 'running',
    definition: null,
    asked: [],
    ...nothing,
  };
}

/** Without a model that was passed over, and was not sent the request. */
function askedWith(
  { asked }: FoldedTurn,
  { model, next, requestHash }: EntryOf<'attempt-failed'>,
): readonly string[] {
  const before = requestHash === undefined ? asked.filter((name) => name !== model) : [...asked, model];
  return [...new Set([...before, next.model])];
}

function ratedWith({ rated }: FoldedTurn, ratings: readonly EntryOf<'feedback'>[]): readonly Rating[] {
  const values = ratings.flatMap(({ value }) => (value === 'none' ? [] : [value]));
  return [...new Set([...rated, ...values])].sort();
}

function endOf({ startedAt }: TurnRow, { outcome, createdAt }: EntryOf<'turn-ended'>) {
  const ms = outcome === 'waiting' ? null : Math.max(0, Date.parse(createdAt) - Date.parse(startedAt));
  return { outcome, ms };
}

function answered(
  row: FoldedTurn,
  { index, model, tool_calls: calls = [], reported = [] }: MessageEntry,
): FoldedTurn {
  const named = [...calls.map((call) => call.function.name), ...reported.map(({ title }) => title)];
  return {
    ...row,
    answer: index,
    models: [...new Set([...row.models, ...(model === undefined ? [] : [model])])],
    tools: [...new Set([...row.tools, ...named])],
  };
}

const COLUMNS = [
  ...['conversation', 'title', 'agent', 'models', 'outcome', 'startedAt', 'ms', 'calls', 'tokens', 'usd'],
  ...['unpricedCalls', 'tools', 'index', 'answer', 'turnId', 'rated'],
] as const;

/** RFC 4180. A text that a spreadsheet would run as a formula begins with an apostrophe. */
export function turnsCsv(
  rows: readonly (TurnRow & { readonly conversation: string; readonly title?: string | null })[],
): string {
  const lines = rows.map((row) => COLUMNS.map((name) => csvCell(row[name as keyof typeof row])).join(','));
  return [COLUMNS.join(','), ...lines].map((line) => `${line}\r\n`).join('');
}

function csvCell(value: unknown): string {
  const text = Array.isArray(value) ? value.join(' ') : String(value ?? '');
  const safe = typeof value !== 'number' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
