import type { Entry, EntryOf, MessageEntry } from '../log/entry.ts';
import { isShown } from '../log/entry-traits.ts';
import { withFileLines } from '../log/parts.ts';
import { expand } from '../log/ranges.ts';
import { estimateTokens, firstCodePoints, LINE_BREAK } from '../text/text.ts';
import { shortName, textOfEntry } from './summary-extract.ts';
import type { SummaryInput } from './summary-text.ts';

/**
 * The input of a summarising model: the entries to sum up, in words, and the summary that covers earlier ones.
 * Only lines that begin with `[` or `SUMMARY SO FAR` belong to the transcript itself: from its second line on, each line
 * of an author's text begins with `> `, so that no author can imitate another (L17).
 */

export interface TranscriptInput extends Pick<SummaryInput, 'entries' | 'agent' | 'mayContain' | 'covered'> {
  /** Estimated tokens. */
  readonly maxTokens: number;
}

/** Code points of one entry: the first of these with which everything fits. */
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
  return [...newest.map(({ content }) => `SUMMARY SO FAR\n> ${quoteRest(content)}\n`), ...lines].join('\n');
}

function line(entry: Entry, { agent, mayContain }: TranscriptInput, length: number): string {
  const cut = (text: string) => quoteRest(firstCodePoints(text, length));
  if (entry.type === 'message' && entry.agentId === agent) {
    if (entry.role === 'tool')
      return `[${entry.index}] ${quoteRest(entry.toolName ?? 'a tool')} answered: ${cut(withFileLines(entry))}`;
    return `[${entry.index}] ${agent}: ${cut([withFileLines(entry), ...calls(entry)].join(' '))}`;
  }
  if (!isShown(entry) || !mayContain(entry)) return '';
  return `[${entry.index}] ${shortName(entry)}: ${cut(textOfEntry(entry))}`;
}

/** Puts `> ` before each line but the first. */
function quoteRest(text: string): string {
  return text.split(LINE_BREAK).join('\n> ');
}

function calls({ tool_calls: made = [] }: MessageEntry): string[] {
  return made.map(({ function: call }) => `(calls ${call.name} ${call.arguments})`);
}

function isSummaryOf(entry: Entry, agent: string): boolean {
  return entry.type === 'summary' && entry.agent === agent;
}
