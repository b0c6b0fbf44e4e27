import type { Entry } from '../../src/conversation/index.ts';
import type { ConversationRow } from '../../src/persistence/index.ts';

/** Names that a careless map, path or file system would handle wrongly. */
export const AWKWARD_IDS = [
  'constructor',
  '__proto__',
  'toString',
  'hasOwnProperty',
  'index',
  '-',
  '_',
  '0',
  'a'.repeat(128),
  'A'.repeat(128),
  'tostring',
];

export function entry(
  index: number,
  content: string = `message ${index}`,
  more: Record<string, unknown> = {},
): Entry {
  return {
    index,
    id: `id-${index}-${content.length}`,
    createdAt: '2026-11-21T20:39:00.000Z',
    type: 'message',
    role: 'user',
    author: { kind: 'person', id: 'alice', name: 'Alice' },
    content,
    ...more,
  };
}

export function batch(from: number, count: number, content?: string): Entry[] {
  return Array.from({ length: count }, (_, position) => entry(from + position, content));
}

export function row(id: string, length = 1): ConversationRow {
  return {
    id,
    title: null,
    newest: 'That is all.',
    phase: 'chat',
    mode: 'agent',
    activeAgent: null,
    length,
    updatedAt: '2026-11-21T20:39:00.000Z',
    tokens: 12_345,
    usd: 0.031,
    activeAt: '2026-11-21T20:39:00.000Z',
    activeLength: length,
    unpricedCalls: 1,
    waiting: [],
    limited: [],
    stopped: [],
    archived: false,
    agents: ['pm'],
    people: ['alice'],
    activity: [{ agent: 'pm', status: 'waiting', since: null, for: 'answer', entry: 3, position: 0 }],
    spent: [{ day: '2026-11-21', agent: 'pm', calls: 2, tokens: 12_345, usd: 0.031, unpricedCalls: 1 }],
  };
}
