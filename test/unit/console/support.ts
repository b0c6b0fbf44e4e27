import type { Entry, NewEntry } from '../../../src/conversation/index.ts';

const START = Date.parse('2026-11-22T10:00:00.000Z');
export const at = (seconds: number): number => START + seconds * 1_000;
type WithTime = NewEntry & { readonly after?: number };

/** A log of these entries, each `after` seconds after the one before (1 by default). */
export function logOf(...drafts: readonly WithTime[]): Entry[] {
  let seconds = 0;
  return drafts.map(({ after = 1, ...draft }, index) => {
    seconds += after;
    return { index, id: `id-${index}`, createdAt: new Date(at(seconds)).toISOString(), ...draft } as Entry;
  });
}

const agentAuthor = (slug: string) => ({ kind: 'agent', id: slug, name: slug.toUpperCase() }) as const;
const SYSTEM = { kind: 'system', id: 'parley', name: 'Parley' } as const;
type More = Record<string, unknown> & { readonly after?: number };

export const say = (content: string, more: More = {}) =>
  ({
    type: 'message',
    role: 'user',
    author: { kind: 'person', id: 'alice', name: 'Alice' },
    content,
    ...more,
  }) as WithTime;

export const answer = (slug: string, content: string, more: More = {}) =>
  ({
    type: 'message',
    role: 'assistant',
    author: agentAuthor(slug),
    content,
    turnId: `turn-${slug}`,
    ...more,
  }) as WithTime;

export const calling = (slug: string, tool: string, parameters: object = {}, more: More = {}) =>
  answer(slug, '', {
    tool_calls: [
      { id: 'c1', type: 'function', function: { name: tool, arguments: JSON.stringify(parameters) } },
    ],
    ...more,
  });

export const result = (index: number, content: string, more: More = {}) =>
  ({
    type: 'message',
    role: 'tool',
    author: SYSTEM,
    content,
    call: { index, position: 0 },
    ...more,
  }) as WithTime;

export const begin = (slug: string, more: More = {}) =>
  ({
    type: 'turn-started',
    author: agentAuthor(slug),
    turnId: `turn-${slug}`,
    agent: slug,
    trigger: [0],
    ...more,
  }) as WithTime;

export const end = (slug: string, outcome: string, read: number, more: More = {}) =>
  ({
    type: 'turn-ended',
    author: agentAuthor(slug),
    turnId: `turn-${slug}`,
    agent: slug,
    outcome,
    lastProcessedMessageIndex: read,
    ...more,
  }) as WithTime;

export const other = (type: string, more: More) => ({ type, author: SYSTEM, ...more }) as WithTime;
