import type { Entry, EntryOf, MessageEntry } from '../log/entry.ts';
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
  /** The models that answered, and the tools that they called. */
  readonly models: readonly string[];
  readonly tools: readonly string[];
  /** In and out. */
  readonly tokens: number;
}

/** The turns of a log, newest first. Copies (a fork) are not repeated: their own conversation has them. */
export function turnRows(entries: readonly Entry[]): TurnRow[] {
  const rows = new Map<string, TurnRow>();
  const used = new Map<string, Used>();
  for (const entry of entries) {
    const { turnId = '' } = entry;
    if (entry.copiedFrom !== undefined || turnId === '') continue;
    if (entry.type === 'turn-started' && !rows.has(turnId)) rows.set(turnId, begun(entry));
    const row = rows.get(turnId);
    if (!row) continue;
    used.set(turnId, usedWith(used.get(turnId) ?? NOTHING_USED, entry));
    if (entry.type === 'turn-started') rows.set(turnId, { ...row, outcome: 'running', ms: null });
    if (entry.type === 'turn-ended') rows.set(turnId, { ...row, ...endOf(row, entry) });
    if (entry.type === 'message' && entry.role === 'assistant') rows.set(turnId, answered(row, entry));
  }
  const finished = [...rows.values()].map((row) => {
    const { calls, inputTokens, outputTokens, usd, unpricedCalls } = used.get(row.turnId) ?? NOTHING_USED;
    return { ...row, calls, tokens: inputTokens + outputTokens, usd, unpricedCalls };
  });
  return finished.reverse();
}

function begun({ turnId, agent, index, createdAt }: EntryOf<'turn-started'>): TurnRow {
  const nothing = { calls: 0, usd: 0, unpricedCalls: 0, tokens: 0, models: [], tools: [] };
  return {
    turnId,
    agent,
    index,
    answer: null,
    startedAt: createdAt,
    ms: null,
    outcome: 'running',
    ...nothing,
  };
}

function endOf({ startedAt }: TurnRow, { outcome, createdAt }: EntryOf<'turn-ended'>) {
  const ms = outcome === 'waiting' ? null : Math.max(0, Date.parse(createdAt) - Date.parse(startedAt));
  return { outcome, ms };
}

function answered(
  row: TurnRow,
  { index, model, tool_calls: calls = [], reported = [] }: MessageEntry,
): TurnRow {
  const named = [...calls.map((call) => call.function.name), ...reported.map(({ title }) => title)];
  return {
    ...row,
    answer: index,
    models: [...new Set([...row.models, ...(model === undefined ? [] : [model])])],
    tools: [...new Set([...row.tools, ...named])],
  };
}

const COLUMNS = [
  ...['conversation', 'agent', 'models', 'outcome', 'startedAt', 'ms', 'calls', 'tokens', 'usd'],
  ...['unpricedCalls', 'tools', 'index', 'answer', 'turnId'],
] as const;

/** RFC 4180. A text that a spreadsheet would run as a formula begins with an apostrophe. */
export function turnsCsv(rows: readonly (TurnRow & { readonly conversation: string })[]): string {
  const lines = rows.map((row) => COLUMNS.map((name) => csvCell(row[name as keyof typeof row])).join(','));
  return [COLUMNS.join(','), ...lines].map((line) => `${line}\r\n`).join('');
}

function csvCell(value: unknown): string {
  const text = Array.isArray(value) ? value.join(' ') : String(value ?? '');
  const safe = typeof value !== 'number' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
