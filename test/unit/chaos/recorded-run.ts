import type { Entry } from '../../../src/client/index.ts';
import type { Acknowledged } from '../../chaos/actors/publishers.ts';
import type { Observed, SeenView } from '../../chaos/findings.ts';
import type { PlannedPost } from '../../chaos/posts-plan.ts';

/** What a small, correct run recorded: a question, two calls, an answer; another question, another answer. */

type Fields = Record<string, unknown>;
const ann = { kind: 'person', id: 'ann', name: 'ann' };
const pm = { agent: 'pm', agentId: 'pm', author: { kind: 'agent', id: 'pm', name: 'PM' } };
const called = (name: string) => ({ id: 'x', type: 'function', function: { name, arguments: '{}' } });
const said = { type: 'message', role: 'assistant', partType: 'text', ...pm };
const result = (position: number) => ({
  ...{ type: 'message', role: 'tool', turnId: 't', content: `did oak:2:${position}`, ...pm },
  ...{ call: { index: 2, position }, tool_call_id: `c2_${position}` },
});
const started = (position: number) => ({
  ...{ type: 'tool-started', turnId: 't', call: { index: 2, position }, risk: 'risky', ...pm },
});
const post = (number: number) => ({
  ...{
    type: 'message',
    role: 'user',
    id: `ann-oak-${number}`,
    content: `wish ${number}`,
    author: ann,
    to: ['pm'],
  },
});

function entriesOf(): Fields[] {
  return [
    post(0),
    { type: 'turn-started', turnId: 't', trigger: [0], ...pm },
    { ...said, content: null, turnId: 't', tool_calls: [called('look'), called('write')], requestHash: 'h2' },
    started(0),
    result(0),
    started(1),
    result(1),
    { ...said, turnId: 't', content: 'both done', requestHash: 'h7' },
    { type: 'turn-ended', turnId: 't', outcome: 'completed', lastProcessedMessageIndex: 9, ...pm },
    post(1),
    { type: 'turn-started', turnId: 'u', trigger: [9], ...pm },
    { ...said, turnId: 'u', content: 'welcome', requestHash: 'h11' },
    { type: 'turn-ended', turnId: 'u', outcome: 'completed', lastProcessedMessageIndex: 13, ...pm },
  ].map((entry, index) => ({ id: `id-${index}`, createdAt: '', ...entry, index }));
}

export function plannedPost(number: number): PlannedPost {
  return {
    ...{ id: `ann-oak-${number}`, conversation: 'oak', publisher: 'ann', number, content: `wish ${number}` },
    ...{ delivery: 'steer', atMs: number, way: 'api', again: [] },
  };
}

export function viewOf(at: number | null, more: Partial<SeenView> = {}): SeenView {
  const call = (id: string) => ({ id });
  return {
    ...{
      conversation: 'oak',
      agent: 'pm',
      at,
      requestHash: `h${at}`,
      fault: null,
      included: [0, 2, 4, 6, 7, 9],
    },
    parts: [
      { kind: 'history', entries: [0, 2] },
      { kind: 'away-block', entries: [0] },
      { kind: 'trigger', entries: [9] },
    ],
    messages: [
      { role: 'user', content: 'wish 0' },
      { role: 'assistant', content: null, tool_calls: [call('c2_0'), call('c2_1')] },
      { role: 'tool', content: 'did', tool_call_id: 'c2_0' },
      { role: 'tool', content: 'did', tool_call_id: 'c2_1' },
      { role: 'user', content: 'wish 1' },
    ],
    ...more,
  };
}

export interface RecordedRun extends Observed {
  readonly entries: Fields[];
  readonly acknowledged: Acknowledged[];
  readonly effects: Map<string, number>;
}

/** `spoil` may change the entries before they are checked. */
export function runOf(spoil: (entries: Fields[]) => void = () => undefined): RecordedRun {
  const entries = entriesOf();
  spoil(entries);
  return {
    entries,
    planned: [plannedPost(0), plannedPost(1)],
    acknowledged: [
      { post: plannedPost(0), index: 0 },
      { post: plannedPost(0), index: null },
      { post: plannedPost(1), index: null },
    ],
    logs: new Map([['oak', entries as unknown as Entry[]]]),
    views: [],
    effects: new Map([
      ['oak:2:0', 1],
      ['oak:2:1', 1],
    ]),
    refused: new Map(),
  };
}
