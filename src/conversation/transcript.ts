import type { Entry, EntryOf, MessageEntry } from './entry.ts';
import { firstCodePoints } from './preview.ts';
import { expand, type Ranges } from './ranges.ts';
import { wordsOf } from './summary-text.ts';
import { estimateTokens, plainName } from './text.ts';

/** What a summarising model reads: what is to be summed up, in words, and the summary that stands for what came before. */

export interface TranscriptInput {
  readonly entries: readonly Entry[];
  readonly agent: string;
  readonly canStand: (entry: Entry) => boolean;
  readonly covered: Ranges;
  /** Estimated tokens. */
  readonly maxTokens: number;
}

/** Of one entry, in code points: as much as fits. */
const LENGTHS = [2_000, 300];

/** Null: it does not fit. */
export function transcript(input: TranscriptInput): string | null {
  for (const length of LENGTHS) {
    const text = written(input, length);
    if (estimateTokens(text) <= input.maxTokens) return text;
  }
  return null;
}

function written(input: TranscriptInput, length: number): string {
  const covered = expand(input.covered).flatMap((index) => input.entries[index] ?? []);
  const earlier = covered.filter((entry): entry is EntryOf<'summary'> => isSummaryOf(entry, input.agent));
  const known = new Set(earlier.flatMap((summary) => expand(summary.entries)));
  const lines = covered
    .filter((entry) => !known.has(entry.index))
    .map((entry) => line(entry, input, length))
    .filter((text) => text !== '');
  return [...earlier.map(({ content }) => `SUMMARY SO FAR\n${content}\n`), ...lines].join('\n');
}

function line(entry: Entry, { agent, canStand }: TranscriptInput, length: number): string {
  const cut = (text: string) => firstCodePoints(text, length);
  if (entry.type === 'message' && entry.agentId === agent) {
    if (entry.role === 'tool')
      return `[${entry.index}] ${entry.toolName ?? 'a tool'} answered: ${cut(entry.content ?? '')}`;
    return `[${entry.index}] ${agent}: ${cut([entry.content ?? '', ...calls(entry)].join(' '))}`;
  }
  if (!canStand(entry)) return '';
  return `[${entry.index}] ${plainName(entry.author.name)}: ${cut(wordsOf(entry))}`;
}

function calls({ tool_calls: made = [] }: MessageEntry): string[] {
  return made.map(({ function: call }) => `(calls ${call.name} ${call.arguments})`);
}

function isSummaryOf(entry: Entry, agent: string): boolean {
  return entry.type === 'summary' && entry.agent === agent;
}
