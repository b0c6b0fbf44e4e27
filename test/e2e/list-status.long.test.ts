import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { connect as connectToNats } from 'nats';
import { describe, expect, it } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { openProject } from '../support/project.ts';

const call = (name: string, args: object) => ({ text: '', tool_calls: [{ name, arguments: args }] });

/** The element of a question in the list. */
const QUESTION = { agent: 'pm', status: 'waiting', for: 'question', entry: expect.any(Number), position: 0 };

const RULES = [
  { when: { last: '/unsure/' }, reply: call('ask', { question: 'Which one?' }) },
  { when: { mode: 'run' }, reply: call('complete_node', { outcome: 'done', summary: 'Known.' }) },
  { when: { last: '/search/' }, reply: call('recall', { from: 0, to: 0 }) },
  { reply: { text: 'Noted.' } },
];
const WORKFLOW = `
id: talk
start: consult
nodes:
  consult: { agent: pm, brief: Find out what is wanted., outcomes: { done: end } }
`;
const AGENTS = {
  pm: '---\nname: PM\ndescription: answers\nmodes: [chat]\ntools: [ask, recall]\n---\nAnswer.',
};

describe.each(['file', 'jetstream'] as const)('the list of conversations of the %s store', (store) => {
  const project = perTest(() =>
    openProject({
      nats: {},
      settings: { limits: { modelCallsPerTurn: 1 } },
      agents: AGENTS,
      script: RULES,
      files: { 'workflows/talk.yaml': WORKFLOW },
    }),
  );

  async function removeRows(): Promise<void> {
    if (store === 'file') return rm(join(project.data, 'conversations', 'index.json'));
    const connection = await connectToNats({ servers: project.nats.url });
    const bucket = await connection.jetstream().views.kv('PARLEY_STATE');
    for (const id of ['asked', 'halted', 'done', 'held']) await bucket.delete(`row.${id}`);
    await connection.close();
  }

  it('the list shows waiting approvals, limits and stops, also after a restart and when its rows are lost', async () => {
    const listed = async () => {
      const rows = (await project.parley('ls', '--json')).json();
      return rows.map(({ id, running, waiting, limited, stopped, activity }) => ({
        id,
        running,
        waiting,
        limited,
        stopped,
        activity: activity?.map(({ since, ...one }: { since: string }) => {
          expect(Date.now() - Date.parse(since)).toBeLessThan(90_000);
          return one;
        }),
      }));
    };
    const wanted = [
      { id: 'asked', running: [], waiting: ['pm'], limited: [], stopped: [], activity: [QUESTION] },
      { id: 'done', running: [], waiting: [], limited: [], stopped: [], activity: [] },
      {
        id: 'halted',
        running: [],
        waiting: [],
        limited: ['pm'],
        stopped: [],
        activity: [{ agent: 'pm', status: 'limited', of: 'modelCallsPerTurn', entry: expect.any(Number) }],
      },
      {
        id: 'held',
        running: [],
        waiting: [],
        limited: [],
        stopped: ['pm'],
        activity: [{ agent: 'pm', status: 'stopped' }],
      },
    ];
    let daemon = await project.up('--store', store);
    await project.parley('say', 'asked', 'I am unsure', '--wait');
    await project.parley('say', 'halted', 'search it', '--wait');
    await project.parley('say', 'done', 'hello', '--wait');
    await project.parley('say', 'held', 'hello', '--wait');
    await project.parley('stop', 'done', 'pm'); // holds nothing
    await project.parley('stop', 'held', 'pm');
    const begun = await project.parley(...'mode held run --workflow talk --input clock'.split(' '));
    expect([begun.code, begun.stdout]).toEqual([
      0,
      expect.stringContaining('run of talk at consult; pm is stopped: the run waits until it is resumed\n'),
    ]);
    const first = await listed();
    expect(first).toEqual(wanted);
    const shown = await (await project.connect()).request('conversation', { conversation: 'halted' });
    expect(shown.agents.pm?.status).toBe('limited');

    expect(await daemon.stop()).toBe(0);
    daemon = await project.up('--store', store);
    expect(await listed()).toEqual(first);
    const table = (await project.parley('ls')).stdout;
    expect(table).toMatch(/^asked .* pm waiting +an answer \(\d+[sm]\) /m);
    expect(table).toMatch(/^halted .* pm limited /m);
    expect(table).toMatch(/^held .* pm is stopped /m);
    expect(await daemon.stop()).toBe(0);

    await removeRows();
    if (store === 'file') expect((await project.parley('fsck')).code).toBe(0);
    daemon = await project.up('--store', store);
    await expect.poll(listed).toEqual(first);
    expect((await project.parley('resume', 'held')).code).toBe(0);
    const left = { ...wanted.at(-1), stopped: [], activity: [] };
    await expect.poll(async () => (await listed()).at(-1)).toEqual(left);
    const held = await (await project.connect()).request('conversation', { conversation: 'held' });
    expect([held.mode, held.run]).toEqual(['agent', null]); // its run has ended
    expect(await daemon.stop()).toBe(0);
  }, 90_000);
});
