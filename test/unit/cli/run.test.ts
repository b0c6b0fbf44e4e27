import { expect, it } from 'vitest';
import { type Entry, ParleyError } from '../../../src/client/index.ts';
import {
  agent,
  ended,
  entryOf,
  type FakeDaemon,
  fakeDaemon,
  parley,
  person,
  posted,
  started,
} from './support.ts';

const at = { runId: 'r', workflowId: 'ship' };
const runEnded = (index: number, more: object): Entry => entryOf('run-ended', index, { ...at, ...more });

/** A daemon whose run of `ship` has these entries after its input, which is entry 3. */
function running(...after: readonly Entry[]): FakeDaemon {
  const document = { id: 'c', length: 9, agents: {}, run: { ...at, node: 'build' } };
  const asked = after.filter((entry) => entry.type === 'approval-requested');
  const approvals = asked.map((entry) => ({ ...entry, conversation: 'c', risk: 'risky', mayHaveRun: false }));
  const daemon = fakeDaemon({ conversation: document, approvals: { approvals, more: 0 } });
  daemon.onPost = (message) => {
    daemon.say(
      entryOf('mode-entered', 0, {}),
      entryOf('run-started', 1, at),
      entryOf('node-entered', 2, { ...at, node: 'build', agent: 'dev' }),
      person(3, message.content, { to: ['dev'] }),
      started(4, 'dev', [3]),
      ...after,
    );
    return posted(message, 3, ['dev']);
  };
  return daemon;
}

it('run posts the input with the workflow into a new conversation, and prints its id', async () => {
  const daemon = fakeDaemon();
  daemon.onPost = (message) => posted(message, 3, ['pm']);
  const { code, out } = await parley(['run', 'ship', 'a', 'clock'], { daemon });
  expect(code).toBe(0);
  expect(daemon.posts).toMatchObject([{ workflow: 'ship', content: 'a clock', publisher: 'alice' }]);
  expect(out).toBe(`${daemon.posts[0]?.conversation} 3: posted, for pm (id made)\n`);
  await parley(['run', 'ship', 'a clock'], { daemon });
  expect(daemon.posts[1]?.conversation).not.toBe(daemon.posts[0]?.conversation);
});

it('run reads the input from stdin, and accepts a conversation, an id and an author', async () => {
  const daemon = fakeDaemon();
  const argv = ['run', 'ship', '-', '--conversation', 'c', '--id', 'x', '--as', 'Zoë', '--publisher', 'bob'];
  await parley(argv, { daemon, stdin: 'one\ntwo\n' });
  const from = { publisher: 'bob', author: { name: 'Zoë' } };
  expect(daemon.posts).toEqual([
    { workflow: 'ship', content: 'one\ntwo', conversation: 'c', id: 'x', ...from },
  ]);
  const { code, err } = await parley(['run', 'ship', '-'], { daemon, stdin: '\n' });
  expect([code, err]).toEqual([
    2,
    expect.stringContaining('give a text: `parley run WORKFLOW "some words"`'),
  ]);
});

const done = [
  agent(5, 'dev', 'It is built.'),
  runEnded(6, { outcome: 'built', summary: 'a clock', turnId: 't-dev' }),
  ended(7, 'dev'),
];

it.each([
  ['that a node ends', done, 0, 'the run of ship ended: built (a clock)'],
  ['that a person leaves', [runEnded(5, { outcome: 'left' }), ended(6, 'dev', 'aborted')], 1, 'ended: left'],
  [
    'that stays at a node',
    [agent(5, 'dev', 'Hm.'), ended(6, 'dev')],
    1,
    'has not ended: it is at the node build',
  ],
  ['whose turn fails', [ended(5, 'dev', 'failed')], 1, 'has not ended: it is at the node build'],
])(
  'run --wait of a run %s prints the answers and has the exit code of the run',
  async (_, after, code, note) => {
    const daemon = running(...after);
    const ran = await parley(['run', 'ship', 'a clock', '--conversation', 'c', '--wait'], { daemon });
    expect(ran.code).toBe(code);
    expect(ran.err).toContain('conversation c\n');
    expect(ran.err).toContain(note);
    if (after === done) expect(ran.out).toContain('It is built.');
  },
);

it('run names the option for operators when the publisher may not start the workflow', async () => {
  const daemon = fakeDaemon();
  daemon.onPost = () => {
    throw new ParleyError('FORBIDDEN', 'alice may not start the workflow ship', { hint: 'an operator may' });
  };
  const { code, err } = await parley(['run', 'ship', 'a clock'], { daemon });
  expect([code, err]).toEqual([
    1,
    expect.stringContaining('with the credentials of an operator: --operator'),
  ]);
});

it('run --wait at an approval names it and the command to answer, and has the exit code 1', async () => {
  const asks = entryOf('approval-requested', 5, {
    ...{ approvalId: 'ap1', turnId: 't-dev', call: { index: 4, position: 0 }, agent: 'dev', tool: 'write' },
    arguments: '{}',
  });
  const daemon = running(asks, ended(6, 'dev', 'waiting'));
  const ran = await parley(['run', 'ship', 'a clock', '--conversation', 'c', '--wait'], { daemon });
  expect(ran.code).toBe(1);
  expect(ran.err).toMatch(/parley approve ap1/);
  expect(ran.err).toMatch(/the run of ship waits at the node build for the answer to ap1.*`\S+ tail c`/);
  expect(ran.err).not.toContain('say c');
});
