import { cut } from '../../kernel/index.ts';
import type { ReportedCall } from './entry.ts';

/** Calls that other agents are shown, and UTF-16 units of each result. */
const MOST = 20;
const LONGEST = 2_000;

/** The calls that an agent reports, in words for other agents and for people: its report, which nothing here has checked. */
export function reportedText(calls: readonly ReportedCall[] = []): string {
  const lines = calls.slice(0, MOST).flatMap(({ title, kind, status, result }) => {
    const line = `(reported call: ${title}; ${kind}, ${status})`;
    return result ? [line, cut(result, LONGEST)] : [line];
  });
  const more = calls.length > MOST ? [`(and ${calls.length - MOST} more calls)`] : [];
  return [...lines, ...more].join('\n');
}
