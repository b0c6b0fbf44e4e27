import { describe, expect, it } from 'vitest';
import { type Entry, exportEntries, failedAnswer } from '../../../src/conversation/index.ts';

const at = '2026-03-01T10:00:00.000Z';
const alice = { kind: 'person', id: 'alice', name: 'Alice\n# Title' };
const lead = { kind: 'agent', id: 'lead', name: 'Lena Lead' };
const call = { id: 'c', type: 'function', function: { name: 'fs_read', arguments: '{"path":"a.md"}' } };
const said = { type: 'message', author: lead };
const asks = { ...said, role: 'assistant', content: null, tool_calls: [call] };
const result = { toolName: 'fs_read', content: 'a ``` fence', call: { index: 1, position: 0 } };
const entries = [
  { id: 'a', type: 'message', role: 'user', author: alice, content: 'read it' },
  { id: 'b', ...asks },
  { id: 'c', ...said, role: 'tool', ...result },
  { id: 'd', type: 'title-set', author: alice, title: 'Read a file', by: 'alice' },
].map((entry, index) => ({ index, createdAt: at, ...entry, ingressSequence: 7 })) as unknown as Entry[];

describe('a conversation as a text', () => {
  it('Markdown has the title, each message below its author and time, and calls and results as code', () => {
    expect(exportEntries(entries, 'markdown')).toBe(`# Read a file

## Alice # Title (2026-03-01 10:00 UTC, entry 0)

> read it

## Lena Lead (2026-03-01 10:00 UTC, entry 1)

Calls fs_read:

\`\`\`
{"path":"a.md"}
\`\`\`

Result of fs_read:

\`\`\`\`
a \`\`\` fence
\`\`\`\``);
  });

  it('cases are the rated answers, each with the messages before it and what each person said', () => {
    const rated = {
      createdAt: at,
      type: 'feedback',
      author: { kind: 'person', id: 'ann', name: 'Ann' },
      on: 4,
    };
    const all = [
      ...entries,
      { ...said, index: 4, id: 'e', createdAt: at, role: 'assistant', content: 'Done.' },
      { ...rated, index: 5, id: 'f', value: 'up' },
      { ...rated, index: 6, id: 'g', value: 'down', note: 'not yet' },
    ] as unknown as Entry[];
    expect(exportEntries(entries, 'cases')).toBe('');
    const [line = '', ...others] = exportEntries(all, 'cases').split('\n');
    expect(others).toEqual([]);
    expect(JSON.parse(line)).toMatchObject({
      ...{ index: 4, agent: 'lead', answer: 'Done.' },
      feedback: [{ by: 'ann', value: 'down', note: 'not yet' }],
      messages: [{ role: 'user', content: 'read it' }, { role: 'assistant' }, { role: 'tool' }],
    });
  });

  it('Markdown has who approved or denied a call and why, who gave a result, and what failed in a model call', () => {
    const of = { index: 1, position: 0 };
    const ann = { kind: 'person', id: 'ann', name: 'Ann' };
    const ask = { type: 'approval-requested', author: lead, call: of, tool: 'fs_write', risk: 'write' };
    const answered = { type: 'approval-answered', author: ann, call: of };
    const result = { ...said, role: 'tool', toolName: 'fs_write', call: of, content: '{}' };
    const failure = { role: 'assistant', author: lead, partType: 'error' };
    const all = [
      { ...ask, mayHaveRun: false },
      { ...answered, answer: 'approve' },
      { ...answered, answer: 'deny', reason: 'not\n\nhere' },
      { ...ask, mayHaveRun: true, tool: undefined },
      { ...answered, answer: 'result' },
      result,
      { ...answered, author: { kind: 'system', id: 'parley', name: 'Parley' }, answer: 'expired' },
      {
        type: 'message',
        ...failure,
        content: failedAnswer({ code: 'TIMEOUT', message: 'too\nslow' }, 'I will'),
      },
      {
        ...ask,
        mayHaveRun: false,
        approvalId: 'f',
        asks: { server: 'trips', message: 'Which day?', schema: {} },
      },
      {
        ...answered,
        author: { ...answered.author, name: 'Bob' },
        approvalId: 'f',
        answer: 'approve',
        arguments: '{"day":"mon"}',
      },
    ].map((entry, index) => ({ index, id: `${index}`, createdAt: at, ...entry }) as unknown as Entry);
    expect(
      exportEntries(all, 'markdown'),
    ).toBe(`Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 0): An approval is needed for fs_write

Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 1): Approved by Ann

Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 2): Denied by Ann

Reason:

> not
>
> here

Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 3): It may have run already, so its outcome is needed

Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 4): Result given by Ann

Result that Ann gave for fs_write:

\`\`\`
{}
\`\`\`

Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 6): Expired without an answer

## Lena Lead (2026-03-01 10:00 UTC, entry 7)

> I will

The model call failed: TIMEOUT: too slow

Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 8): The server trips asks a person

> Which day?

Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 9): Answered by Bob

\`\`\`
{"day":"mon"}
\`\`\``);
  });

  it('no name, reason or failure looks like an approval of another person, in Markdown (EXPORT-1)', () => {
    const line = 'Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 1): Approved by Ann';
    const eve = { kind: 'person', id: 'eve', name: `Eve\n\n${line}\u202e\r## Bob` };
    const of = { index: 1, position: 0 };
    const failed = { role: 'assistant', author: lead, partType: 'error', type: 'message' };
    const all = [
      {
        type: 'approval-answered',
        author: eve,
        call: of,
        answer: 'deny',
        reason: `no\n\n${line}\r\u2028${line}`,
      },
      { type: 'approval-answered', author: eve, call: of, answer: 'result' },
      { type: 'message', role: 'tool', author: lead, toolName: `x\n\n${line}`, call: of, content: line },
      { ...failed, content: failedAnswer({ code: `X\n${line}`, message: `y\n\n${line}` }, line) },
      { ...failed, author: lead, partType: 'text', content: `The model call failed: X\n\n${line}` },
    ].map((entry, index) => ({ index, id: `${index}`, createdAt: at, ...entry }) as unknown as Entry);
    const lines = exportEntries(all, 'markdown').split(/\r\n|[\n\r\u2028]/);
    const fence = lines.indexOf('```');
    expect(lines.splice(fence, 3)).toEqual(['```', line, '```']);
    expect(lines.filter((one) => one !== '' && !one.startsWith('>'))).toEqual([
      `Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 0): Denied by Eve ${line}\\u202e ## Bob`,
      'Reason:',
      `Call 1 of entry 1 (2026-03-01 10:00 UTC, entry 1): Result given by Eve ${line}\\u202e ## Bob`,
      `Result that Eve ${line}\\u202e ## Bob gave for x ${line}:`,
      '## Lena Lead (2026-03-01 10:00 UTC, entry 3)',
      `The model call failed: X ${line}: y ${line}`,
      '## Lena Lead (2026-03-01 10:00 UTC, entry 4)',
    ]);
  });

  it('no text looks like the heading of another message or hides one, in Markdown (EXPORT-1)', () => {
    const heading = '## Bob (2026-03-01 10:00 UTC, entry 0)';
    const texts = [
      `yes\n\n${heading}\n\nno`,
      `yes\r${heading}`,
      `Bob\n===\n`,
      '```\n<!--',
      '    > <details>\n\n</details>',
    ];
    const from = (content: string, index: number) => ({ ...entries[0], index, author: lead, content });
    const run = {
      ...entries[0],
      type: 'node-entered',
      node: 'n',
      brief: texts[0],
      outcome: heading,
      summary: texts[0],
    };
    const ended = { ...entries[0], type: 'run-ended', outcome: `x\n${heading}`, summary: texts[0] };
    const all = [...texts.map(from), run, ended] as unknown as Entry[];
    const lines = exportEntries(all, 'markdown').split(/\r\n|\n|\r/);
    const unquoted = lines.filter((line) => line !== '' && !line.startsWith('>'));
    expect(unquoted).toEqual([
      ...texts.map((_, index) => `## Lena Lead (2026-03-01 10:00 UTC, entry ${index})`),
      '## Node n (2026-03-01 10:00 UTC, entry 0)',
      `Outcome of the node before: ${heading}`,
      'Brief:',
      `## Run ended: x ${heading} (2026-03-01 10:00 UTC, entry 0)`,
    ]);
  });

  it('JSON Lines have all entries without their ingress sequences, and OpenAI has the messages', () => {
    const lines = exportEntries(entries, 'jsonl').split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      entries.map(({ ingressSequence: _, ...entry }) => entry),
    );
    expect(JSON.parse(exportEntries(entries, 'openai'))).toMatchObject([
      { role: 'user', content: 'read it' },
      { role: 'assistant', tool_calls: [{ function: { name: 'fs_read' } }] },
      { role: 'tool', content: 'a ``` fence' },
    ]);
  });

  it('an empty conversation is an empty text', () => {
    expect([exportEntries([], 'markdown'), exportEntries([], 'jsonl'), exportEntries([], 'openai')]).toEqual([
      '',
      '',
      '[]',
    ]);
  });

  it('Markdown has the run of a workflow: its nodes, briefs, outcomes and what was handed on', () => {
    const run = [
      { type: 'run-started', runId: 'r', workflowId: 'ship' },
      { type: 'node-entered', runId: 'r', node: 'build', brief: 'Build it.', agent: 'dev' },
      { type: 'node-entered', runId: 'r', node: 'check', to: ['qa'], outcome: 'built', summary: 'It runs.' },
      { type: 'run-ended', runId: 'r', outcome: 'approved', summary: 'All tests pass.' },
    ].map(
      (entry, index) =>
        ({ index, id: `${index}`, createdAt: at, author: lead, ...entry }) as unknown as Entry,
    );
    expect(exportEntries(run, 'markdown')).toBe(`## Run of ship started (2026-03-01 10:00 UTC, entry 0)

## Node build (2026-03-01 10:00 UTC, entry 1)

Agent: dev

Brief:

> Build it.

## Node check (2026-03-01 10:00 UTC, entry 2)

Outcome of the node before: built

> It runs.

Agent: qa

## Run ended: approved (2026-03-01 10:00 UTC, entry 3)

> All tests pass.`);
  });
});
