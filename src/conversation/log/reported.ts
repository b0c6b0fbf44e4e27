import { cut } from '../../kernel/index.ts';
import type { ReportedCall } from './entry.ts';

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
      ...{ title: cut(title, 200), kind: cut(kind, 40), status: cut(status, 40) },
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
