import type { Entry, EntryOf, MessageEntry } from '../log/entry.ts';
import { expand, type Ranges } from '../log/ranges.ts';
import { estimateTokens, firstCodePoints, LINE_BREAK } from '../text/text.ts';
import { wordsOf } from './summary-extract.ts';
import { shortName } from './summary-lines.ts';

/**
 * What a summarising model reads: what is to be summed up, in words, and the summary that stands for what came before.
 * Only lines that begin with `[` or `SUMMARY SO FAR` are the transcript's own: whatever anybody said stands behind `> `
 * from its second line on, so that nobody can put words into another's mouth (L17).
 */

export interface TranscriptInput {
  readonly entries: readonly Entry[];
  readonly agent: string;
  readonly canStand: (entry: Entry) => boolean;
  readonly covered: Ranges;
  /** Estimated tokens. */
  readonly maxTokens: number;
}

/** Of one entry, in code points: as much as fits. */
const LENGTHS = [2_000, 600, 150, 40];

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
  const newest = earlier.filter((summary) => !known.has(summary.index));
  const lines = covered
    .filter((entry) => !known.has(entry.index))
    .map((entry) => line(entry, input, length))
    .filter((text) => text !== '');
  return [...newest.map(({ content }) => `SUMMARY SO FAR\n> ${behind(content)}\n`), ...lines].join('\n');
}

function line(entry: Entry, { agent, canStand }: TranscriptInput, length: number): string {
  const cut = (text: string) => behind(firstCodePoints(text, length));
  if (entry.type === 'message' && entry.agentId === agent) {
    if (entry.role === 'tool')
      return `[${entry.index}] ${behind(entry.toolName ?? 'a tool')} answered: ${cut(entry.content ?? '')}`;
    return `[${entry.index}] ${agent}: ${cut([entry.content ?? '', ...calls(entry)].join(' '))}`;
  }
  if (!canStand(entry)) return '';
  return `[${entry.index}] ${shortName(entry)}: ${cut(wordsOf(entry))}`;
}

/** Each line but the first behind `> `. */
function behind(text: string): string {
  return text.split(LINE_BREAK).join('\n> ');
}

function calls({ tool_calls: made = [] }: MessageEntry): string[] {
  return made.map(({ function: call }) => `(calls ${call.name} ${call.arguments})`);
}

function isSummaryOf(entry: Entry, agent: string): boolean {
  return entry.type === 'summary' && entry.agent === agent;
}
