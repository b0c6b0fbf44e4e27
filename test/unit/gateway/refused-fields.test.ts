import { describe, expect, it } from 'vitest';
import { parseRequest } from '../../../src/bus/contract.ts';
import { decodePost } from '../../../src/bus/index.ts';
import { decodeOffer } from '../../../src/bus/remote-turns.ts';
import { readRunInput } from '../../../src/gateway/ag-ui/input.ts';
import { readChatRequest } from '../../../src/gateway/openai/request.ts';

const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
const DOORS = {
  v1: (body: unknown) => {
    const headers = { conversation: undefined, idempotencyKey: undefined, retryCount: undefined };
    return readChatRequest(body, { headers, publisher: 'alice', secret: '' });
  },
  'ag-ui': readRunInput,
  entries: (body: unknown) => parseRequest('entries', body),
  answer: (body: unknown) => parseRequest('answer', body),
  seed: (body: unknown) => parseRequest('seed', body),
  offer(body: unknown) {
    const decoded = decodeOffer(bytes(body));
    if (!decoded.ok) throw new Error(decoded.reason);
  },
  post(body: unknown) {
    const decoded = decodePost({
      fallbackId: 'in-1',
      publisher: 'alice',
      conversation: 'demo',
      body: bytes(body),
      messageId: null,
    });
    if (!decoded.ok) throw new Error(decoded.refusal.message);
  },
};
const said = [{ role: 'user', content: 'hi' }];
const run = { threadId: 't', runId: 'r', messages: [] };

describe('a refused field is explained in our own words', () => {
  it.each<[keyof typeof DOORS, unknown, string]>([
    ['v1', [], 'expected an object, got []'],
    ['v1', { model: 3, messages: said }, 'model: expected a text, got 3'],
    ['v1', { model: 'm', messages: [] }, 'messages: expected a list of at least 1, got []'],
    [
      'v1',
      { model: 'm', messages: [{ role: 'king' }] },
      'messages.0.role: expected one of system, developer, user, assistant, tool, function, got "king"',
    ],
    ['v1', { model: 'm', messages: said, n: 2 }, 'n: one answer is given, got 2'],
    ['v1', { model: 'm', messages: said, tools: [1] }, 'tools.0: expected an object, got 1'],
    [
      'v1',
      { model: 'm', messages: said, tools: [{ type: 'function', function: { name: 'a b' } }] },
      'tools.0.function.name: expected 1 to 64 letters',
    ],
    ['v1', { model: 'm', messages: [{ role: 'tool', content: '4' }] }, 'messages.0.tool_call_id: expected'],
    ['ag-ui', { ...run, threadId: 3 }, 'threadId: expected a text, got 3'],
    ['ag-ui', { ...run, runId: '' }, 'runId: expected a text that is not empty, got ""'],
    [
      'ag-ui',
      { ...run, runId: 'r'.repeat(257) },
      `runId: expected a text of at most 256 characters, got "${'r'.repeat(79)}…`,
    ],
    ['ag-ui', { ...run, messages: [{ id: 'm' }] }, 'messages.0.role: expected a text, got nothing'],
    ['entries', { conversation: 'demo', from: -1 }, 'entries: from: expected a number of at least 0, got -1'],
    ['entries', { conversation: 'demo', from: 1.5 }, 'entries: from: expected a whole number, got 1.5'],
    [
      'entries',
      { conversation: 'a.b' },
      'entries: conversation: expected 1 to 128 letters, digits, _ or -, got "a.b"',
    ],
    ['entries', { conversation: 'demo', form: 1 }, 'entries: unknown field "form"'],
    ['entries', 'demo', 'entries: expected an object, got "demo"'],
    [
      'answer',
      { approvalId: 'a', answer: 'yes' },
      'answer: answer: expected one of approve, deny, rerun, result, failed, got "yes"',
    ],
    [
      'answer',
      { approvalId: 'a', answer: 'deny', publisher: 'a.b' },
      'answer: publisher: expected 1 to 128 letters, digits, _ or -, got "a.b"',
    ],
    [
      'seed',
      { conversation: 'demo', messages: [] },
      'seed: messages: expected at least one message, or a post to check, got []',
    ],
    ['offer', { conversation: 'demo', turnId: 3 }, 'turnId: expected a text, got 3'],
    ['post', { content: 'hi', to: 3 }, 'field to: expected'],
  ])('the refusal of a field is explained: %s of %j: %s', (daemon, body, words) => {
    let refusal = 'taken';
    try {
      DOORS[daemon](body);
    } catch (error) {
      refusal = (error as Error).message;
    }
    expect(refusal).not.toMatch(/Invalid (?:input|option|string)|Too (?:small|big)|Unrecognized/);
    expect(refusal.slice(0, words.length)).toBe(words);
  });

  it.each([
    ['v1', { model: 'm' }],
    ['ag-ui', run],
    ['seed', { conversation: 'demo' }],
  ] as const)('a history of more than 10,000 messages is refused by %s', (door, body) => {
    const messages = Array.from({ length: 10_001 }, (_, at) => ({
      id: `m${at}`,
      role: 'user',
      content: 'a',
    }));
    const most = 'messages: a history has at most 10000 messages: leave out the oldest';
    expect(() => DOORS[door]({ ...body, messages })).toThrow(most);
    expect(() => DOORS[door]({ ...body, messages: messages.slice(1) })).not.toThrow();
  });
});
