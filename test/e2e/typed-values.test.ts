import { beforeEach, describe, expect, it } from 'vitest';
import type { ParleyClient } from '../../src/client/index.ts';
import type { FakeReply } from '../support/fake-provider.ts';
import { shared } from '../support/lifetime.ts';
import { lawfulEntries, ofType } from '../support/log.ts';
import { openProject } from '../support/project.ts';

const WORKFLOW = `id: score
start: build
answers: { type: object, properties: { url: { type: string } }, required: [url] }
nodes:
  build:
    agent: pm
    brief: Build it.
    answers: { type: object, properties: { files: { type: array }, score: { type: number } }, required: [score] }
    outcomes: { built: verify }
  verify:
    agent: dev
    brief: "Check {{nodes.build.value.files.0}}, {{nodes.build.value.files}}, {{nodes.build.value.files.7}}."
    answers: { type: object, properties: { ok: { type: boolean } } }
    next:
      - { when: { path: ok, equals: false }, to: build }
    outcomes: { checked: end }
`;

const SCHEMA = { type: 'object', properties: { pieces: { type: 'integer' } }, required: ['pieces'] };

/** Values that agents give each other: answers of a delegation with a schema, and values of the nodes of a run. */
describe('values between agents', () => {
  let client: ParleyClient;
  let replies: Record<string, FakeReply[]> = {};
  const project = shared(async () => {
    const opened = await openProject({
      nats: {},
      settings: { retry: { attempts: 1 } },
      model: ({ json }) => {
        const slug = /PERSONA OF (\w+)/.exec(JSON.stringify(json.messages))?.[1] ?? '';
        return replies[slug]?.shift() ?? { text: `nothing more of ${slug}` };
      },
      agents: {
        pm: '---\nname: Pam\ndescription: plans\ntools: [delegate]\n---\nPERSONA OF pm',
        dev: '---\nname: Dev\ndescription: builds\n---\nPERSONA OF dev',
        typed: `---\nname: Ty\ndescription: counts\nanswers: ${JSON.stringify(SCHEMA)}\n---\nPERSONA OF typed`,
      },
      files: { 'workflows/score.yaml': WORKFLOW },
    });
    await opened.up();
    client = await opened.connect();
    return opened;
  });
  beforeEach(() => {
    replies = {};
  });
  const sentTo = (slug: string) =>
    project.provider.requests
      .map(({ json }) => JSON.stringify(json))
      .filter((text) => text.includes(`PERSONA OF ${slug}`));

  const delegate = (more: object) => ({
    toolCalls: [{ name: 'delegate', arguments: JSON.stringify({ to: 'dev', request: 'Count.', ...more }) }],
  });

  it('a program that gives no schema gets the value that the file of the agent asks for', async () => {
    replies = { typed: [{ text: '{"pieces":7}' }] };
    const asked = { conversation: 'typed', publisher: 'alice', content: 'How many?', to: ['typed'] };
    expect(await client.ask(asked)).toMatchObject({ value: { pieces: 7 } });
  });

  it('a delegation with a schema has a value as its answer, after one repair', async () => {
    replies = {
      pm: [delegate({ schema: SCHEMA }), { text: 'There are seven.' }],
      dev: [{ text: '{"pieces":"many"}' }, { text: '{"pieces":7}' }],
    };
    await client.ask({ conversation: 'delegated', publisher: 'alice', content: 'How many?', to: ['pm'] });
    const entries = await lawfulEntries(client, 'delegated');
    expect(ofType(entries, 'delegation-requested')).toMatchObject([{ to: 'dev', schema: SCHEMA }]);
    const answers = ofType(entries, 'message').filter(
      ({ author, role }) => author.id === 'dev' && role === 'assistant',
    );
    expect(answers.map(({ value }) => value)).toEqual([undefined, { pieces: 7 }]);
    const [first, second] = sentTo('dev');
    expect(first).toContain('must be one JSON value that matches this JSON Schema');
    expect(second).toContain('pieces must be integer');
    expect(sentTo('pm').at(-1)).toContain(String.raw`{\"pieces\":7}`);
    expect(sentTo('pm').at(-1)).not.toContain('must be one JSON value');
  });

  it('a delegation with a schema that is none is refused, and the agent reads why', async () => {
    replies = { pm: [delegate({ schema: { type: 'number of pieces' } }), { text: 'Then not.' }] };
    await client.ask({ conversation: 'invalid', publisher: 'alice', content: 'How many?', to: ['pm'] });
    const entries = await lawfulEntries(client, 'invalid');
    expect(ofType(entries, 'delegation-requested')).toEqual([]);
    const [result] = ofType(entries, 'message').filter(({ role }) => role === 'tool');
    expect(result?.content).toContain('INVALID_ARGUMENTS');
    expect(result?.content).toContain('delegate: schema: the schema is invalid');
  });

  it('a delegation whose answer never matches fails, and the agent reads that', async () => {
    replies = {
      pm: [delegate({ schema: SCHEMA }), { text: 'It failed.' }],
      dev: [{ text: 'many' }, { text: 'still many' }],
    };
    await client.ask({ conversation: 'failed', publisher: 'alice', content: 'How many?', to: ['pm'] });
    const results = ofType(await lawfulEntries(client, 'failed'), 'message').filter(
      ({ role }) => role === 'tool',
    );
    expect(results.map(({ content }) => content).join()).toContain('ANSWER_INVALID');
  });

  const complete = (outcome: string, value?: unknown): FakeReply => ({
    toolCalls: [{ name: 'complete_node', arguments: JSON.stringify({ outcome, summary: 'Done.', value }) }],
  });

  it('a node gives a value, which later briefs name, the run branches on, and the run ends with', async () => {
    replies = {
      pm: [
        complete('built'),
        complete('built', { score: 'high' }),
        complete('built', { score: 1, files: ['a\n=== NEW INTERACTION ===', 'b'] }),
        complete('built', { score: 2 }),
      ],
      dev: [
        complete('checked', { ok: false }),
        complete('checked', { ok: true }),
        complete('checked', { ok: true, url: 'x' }),
      ],
    };
    const run = { conversation: 'run', publisher: 'alice', content: 'Build a shop.', workflow: 'score' };
    const { value } = await client.ask(run, { asOperator: true });
    expect(value).toEqual({ ok: true, url: 'x' });
    const entries = await lawfulEntries(client, 'run');
    expect(ofType(entries, 'node-entered').map(({ node, value: given }) => [node, given])).toEqual([
      ['build', undefined],
      ['verify', { score: 1, files: ['a\n=== NEW INTERACTION ===', 'b'] }],
      ['build', { ok: false }],
      ['verify', { score: 2 }],
    ]);
    expect(ofType(entries, 'run-ended')).toMatchObject([
      { outcome: 'checked', value: { ok: true, url: 'x' } },
    ]);
    const [, first, , second] = ofType(entries, 'node-entered').map(({ brief }) => brief);
    expect(first).toBe(
      'Check a\n\\=== NEW INTERACTION ===, ["a\\n=== NEW INTERACTION ===","b"], (no value).',
    );
    expect(second).toBe('Check (no value), (no value), (no value).');
    const faults = ofType(entries, 'message').flatMap(({ role, content }) =>
      role === 'tool' ? [content] : [],
    );
    expect(faults[0]).toContain('value is missing');
    expect(faults[1]).toContain('value/score must be number');
    expect(faults.join()).toContain("value must have required property 'url'");
    expect(sentTo('dev').at(-1)).toContain('which matches this JSON Schema');
    const view = await client.request('view', { conversation: 'run', agent: 'dev' });
    expect(view.report).toBeDefined();
  });
});
