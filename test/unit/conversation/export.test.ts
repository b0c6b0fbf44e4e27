import { describe, expect, it } from 'vitest';
import { type Entry, exportEntries } from '../../../src/conversation/index.ts';

const at = '2026-03-01T10:00:00.000Z';
const alice = { kind: 'person', id: 'alice', name: 'Alice\n# Title' };
const lead = { kind: 'agent', id: 'lead', name: 'Lena Lead' };
const call = { id: 'c', type: 'function', function: { name: 'fs_read', arguments: '{"path":"a.md"}' } };
const entries = [
  { index: 0, id: 'a', createdAt: at, type: 'message', role: 'user', author: alice, content: 'read it' },
  {
    index: 1,
    id: 'b',
    createdAt: at,
    type: 'message',
    role: 'assistant',
    author: lead,
    content: null,
    tool_calls: [call],
  },
  {
    index: 2,
    id: 'c',
    createdAt: at,
    type: 'message',
    role: 'tool',
    author: lead,
    toolName: 'fs_read',
    content: 'a ``` fence',
    call: { index: 1, position: 0 },
  },
  { index: 3, id: 'd', createdAt: at, type: 'title-set', author: alice, title: 'Read a file', by: 'alice' },
].map((entry) => ({ ...entry, ingressSequence: 7 })) as unknown as Entry[];

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
