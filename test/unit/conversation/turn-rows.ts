import { type Command, type Entry, type NewEntry, wireCallId } from '../../../src/conversation/index.ts';
import { type Called, PERSON } from './team-core.ts';
import { AGENT, ASK, type MakeCommand, type MakeEntry } from './turn-table.ts';

/** The rows of the tables in docs/spec/turns.md: what each adds to the log, or passes to the decider. */

const BY_AGENT = { kind: 'agent', id: AGENT, name: 'Pm' } as const;
const BY_SYSTEM = { kind: 'system', id: 'parley', name: 'Parley' } as const;
const REPORT = { agent: AGENT, duration: 1, requestHash: 'hash' } as const;

function message(fields: object): MakeEntry {
  return (_, turnId) =>
    ({ type: 'message', content: 'words', author: BY_AGENT, turnId, ...fields }) as unknown as NewEntry;
}

const result: MakeEntry = ({ call }, turnId) => ({
  ...{ type: 'message', role: 'tool', author: BY_AGENT, turnId, content: 'result', call },
  tool_call_id: wireCallId(call),
});

const toolCall = { id: 'x', type: 'function', function: { name: 'safe', arguments: '{}' } } as const;

const begin = (isResumed: boolean): MakeEntry => {
  return (_, turnId, next) => ({
    ...{ type: 'turn-started', author: BY_AGENT, agent: AGENT, trigger: [], upTo: next },
    ...(isResumed ? { turnId, resumed: true } : { turnId: 'another' }),
  });
};

const end = (outcome: 'waiting' | 'completed'): MakeEntry => {
  return (_, turnId, next) => ({
    ...{ type: 'turn-ended', author: BY_AGENT, agent: AGENT, turnId, outcome },
    lastProcessedMessageIndex: next + 1,
  });
};

const request = (mayHaveRun: boolean): MakeEntry => {
  return ({ call }, turnId) => ({
    ...{ type: 'approval-requested', author: BY_AGENT, turnId, call },
    ...{ approvalId: 'new', risk: 'risky', mayHaveRun },
  });
};

const release = (answer: 'approve' | 'rerun'): MakeEntry => {
  return ({ call, approvalId }) => ({
    ...{ type: 'approval-answered', author: PERSON, approvalId, call, answer },
  });
};

const system = (type: Entry['type'], fields: object = {}): MakeEntry => {
  return () => ({ type, author: BY_SYSTEM, ...fields }) as unknown as NewEntry;
};

/** What a row of entries adds to the log, by the name of the row. */
export const ENTRY_ROWS: Readonly<Record<string, MakeEntry>> = {
  'message: a person to the agent': message({ role: 'user', author: PERSON, to: [AGENT] }),
  'message: an answer of the agent': message({ role: 'assistant' }),
  'message: an answer with a tool call': message({ role: 'assistant', tool_calls: [toolCall] }),
  'message: the result of its call': result,
  'handoff: to the agent': system('handoff', { from: 'dev', to: AGENT, summary: 'go on' }),
  'delegation-requested: to the agent': system('delegation-requested', {
    ...{ from: 'dev', to: AGENT, request: 'look', call: { index: 0, position: 0 } },
  }),
  'node-entered: with the agent': system('node-entered', { runId: 'r', node: 'n', to: [AGENT] }),
  'turn-started: another turn': begin(false),
  'turn-started: the same turn, resumed': begin(true),
  'message-delivered': (_, turnId) => ({
    ...{ type: 'message-delivered', author: BY_SYSTEM, turnId, agent: AGENT, entries: [] },
  }),
  'attempt-failed': (_, turnId, next) => ({
    ...{ type: 'attempt-failed', author: BY_AGENT, turnId, agent: AGENT, upTo: next },
    ...{ model: 'm', code: 'TIMEOUT', message: 'x', duration: 1, next: { model: 'n' } },
  }),
  'turn-ended: waiting': end('waiting'),
  'turn-ended: any other outcome': end('completed'),
  'agent-stopped': system('agent-stopped', { agent: AGENT, by: 'operator' }),
  'agent-resumed': system('agent-resumed', { agent: AGENT, by: 'operator' }),
  'agent-dismissed': system('agent-dismissed', { agent: AGENT, by: 'operator' }),
};

/** Entries that move neither a turn nor a call, in any state. */
export const UNMOVING: Readonly<Record<string, MakeEntry>> = {
  'limit-reached': system('limit-reached', { agent: AGENT, limit: 'x', content: 'x' }),
  'delegation-answered': system('delegation-answered', { from: 'dev', to: AGENT, answers: [], late: true }),
  summary: system('summary', { agent: AGENT, entries: [], fromIndex: 0, toIndex: 0, content: 'x' }),
  claim: system('claim', { daemon: 'd', epoch: 1 }),
  'team-changed': system('team-changed', { agents: [] }),
  forked: system('forked', { from: 'c', at: 0 }),
  'agent-hired': system('agent-hired', {
    agent: 'scout',
    name: 'Scout',
    description: '',
    persona: 'Look.',
    tools: [],
    model: 'm',
    by: 'pm',
    depth: 1,
  }),
  'phase-entered': system('phase-entered', { from: 'chat', to: 'plan', by: 'x' }),
  'mode-entered': system('mode-entered', { from: 'agent', to: 'chat', by: 'x' }),
  'run-started': system('run-started', { runId: 'r', workflowId: 'w' }),
  'run-ended': system('run-ended', { runId: 'r', outcome: 'x' }),
  feedback: system('feedback', { on: 0, value: 'up' }),
  'title-set': system('title-set', { title: 'x' }),
  'session-set': system('session-set', { agent: AGENT, sessionId: 'x', from: 0 }),
  note: system('note', { content: 'x' }),
};

/** The rows of entries that concern a call. */
export const CALL_ENTRY_ROWS: Readonly<Record<string, MakeEntry>> = {
  'tool-started': ({ core, call }, turnId) => {
    const asked = core.entries[call.index];
    const risk = asked?.type === 'message' ? asked.risks?.[call.position] : null;
    return { type: 'tool-started', author: BY_AGENT, turnId, call, ...(risk ? { risk } : {}) };
  },
  'approval-requested: has not run': request(false),
  'approval-requested: may have run': request(true),
  'approval-answered: approve': release('approve'),
  'approval-answered: rerun': release('rerun'),
  'message: its result': result,
  'turn-started: the same turn, resumed': begin(true),
  'turn-ended: waiting': end('waiting'),
  'turn-ended: any other outcome': end('completed'),
};

const post = (delivery: 'steer' | 'queue' | 'interrupt'): MakeCommand => {
  const author = { id: 'alice', name: 'Alice' };
  return () => ({ type: 'post', post: { id: 'p', content: 'and now?', author, delivery } });
};

const answered = (...names: readonly Called[]): MakeCommand => {
  return ({ core }, turnId) => ({
    ...{ type: 'model-answered', ...REPORT, turnId, upTo: core.entries.length },
    answer: {
      content: 'words',
      toolCalls: names.map(([name, given = {}]) => ({
        ...{ id: 'x', type: 'function' },
        function: { name, arguments: JSON.stringify(given) },
      })),
    },
  });
};

const finish: MakeCommand = ({ call }, turnId) => ({
  ...{ type: 'tool-finished', agent: AGENT, turnId, call, result: 'result', duration: 1 },
});

/** The command of a row, by the name of the row. */
export const COMMAND_ROWS: Readonly<Record<string, MakeCommand>> = {
  'post: steer': post('steer'),
  'post: queue': post('queue'),
  'post: interrupt': post('interrupt'),
  'model-answered: words': answered(),
  'model-answered: a tool call': answered(['safe']),
  'model-answered: a question': answered(ASK),
  'model-failed': ({ core }, turnId) => ({
    ...{ type: 'model-failed', ...REPORT, turnId, upTo: core.entries.length },
    ...{ code: 'X', message: 'x', partial: '' },
  }),
  'attempt-failed': ({ core }, turnId) => ({
    ...{ type: 'attempt-failed', agent: AGENT, turnId, upTo: core.entries.length, duration: 1 },
    ...{ candidate: { model: 'm' }, next: { model: 'n' }, code: 'TIMEOUT', message: 'x' },
  }),
  'model-aborted': ({ core }, turnId) => ({
    ...{ type: 'model-aborted', ...REPORT, turnId, upTo: core.entries.length, partial: '' },
  }),
  'reduce-view': ({ core }, turnId) => ({
    ...{ type: 'reduce-view', agent: AGENT, turnId, upTo: core.entries.length },
    reduction: {
      ...{ covered: [[0, 0]], leftOut: [], shortened: [], previewLength: 500 },
      ...{ content: 'x', writtenBy: 'extract', tokensBefore: 1 },
    },
  }),
  'tool-finished': finish,
  stop: () => ({ type: 'stop', agent: AGENT, by: PERSON }),
  resume: () => ({ type: 'resume', agent: AGENT, by: PERSON }),
  recover: () => ({ type: 'recover' }),
  claim: () => ({ type: 'claim', daemon: 'd' }),
};

const word = (answer: Extract<Command, { type: 'answer' }>['answer']): MakeCommand => {
  return ({ approvalId }) => ({ type: 'answer', approvalId, answer, by: PERSON, result: 'seen' });
};

const recover = (content: string | null): MakeCommand => {
  return ({ call }) => ({ type: 'recover', audited: [{ ...call, content }] });
};

/** The rows of commands that concern a call. */
export const CALL_COMMAND_ROWS: Readonly<Record<string, MakeCommand>> = {
  'tool-finished': finish,
  'answer: approve': word('approve'),
  'answer: deny': word('deny'),
  'answer: rerun': word('rerun'),
  'answer: result': word('result'),
  'answer: failed': word('failed'),
  'answer-calls': ({ call }) => ({ type: 'answer-calls', results: [{ call, content: 'seen' }], by: PERSON }),
  'expire-call': ({ call }) => ({ type: 'expire-call', call }),
  'expire-approval': ({ approvalId }) => ({ type: 'expire-approval', approvalId }),
  recover: () => ({ type: 'recover' }),
  'recover: the audit log has its result': recover('result'),
  'recover: the audit log shows that it did not run': recover(null),
  stop: () => ({ type: 'stop', agent: AGENT, by: PERSON }),
};
