import type { Entry } from '../../conversation/index.ts';
import { shown, transcriptOf } from './render.ts';
import type { Told } from './tool.ts';

/**
 * Entries as one answer. Its size is bounded, because it may become part of a model's context.
 *
 * MCP-PAGE-1  A page has at least one entry, so that a client that continues from `next` reaches the end.
 */

/** Limit of one answer, in characters of JSON. */
const MOST_CHARACTERS = 100_000;
/** Limit of one text in it. */
const LONGEST_TEXT = 8_000;

export interface PageFacts {
  readonly conversation: string;
  /** Length of the whole log. */
  readonly length: number;
}

export function pageOf(facts: PageFacts, entries: readonly Entry[], limit: number, more: object = {}): Told {
  const page: Entry[] = [];
  let room = MOST_CHARACTERS;
  for (const entry of entries.slice(0, limit)) {
    const short = entry.type === 'approval-requested' ? entry : shortened(entry); // a person approves by it
    room -= JSON.stringify(short).length;
    if (room < 0 && page.length > 0) break;
    page.push(short);
  }
  const next = (page.at(-1)?.index ?? facts.length - 1) + 1;
  const rest = facts.length - next;
  const text = transcriptOf(page) || '(no messages)';
  return {
    text: rest > 0 ? `${text}\n(${rest} more: read from ${next})` : text,
    data: { ...facts, next, entries: page, ...more },
  };
}

/** A value with its long texts cut. */
function shortened<T>(value: T): T {
  const json = JSON.stringify(value, (_, part) =>
    typeof part === 'string' ? shown(part, LONGEST_TEXT) : part,
  );
  return JSON.parse(json) as T;
}
