import { describe, expect, it, onTestFinished } from 'vitest';
import type { Entry } from '../../../src/client/index.ts';
import { agent, fakeDaemon, parley, person, start } from './support.ts';

const DETAIL = { id: 'c', phase: 'plan', mode: 'agent', activeAgent: 'dev', length: 3, agents: {} };

const USED = { tokens: 12_345, usd: 0.031, limited: ['pm'] };

describe('ls', () => {
  const row = (id: string, used: object = {}) => ({
    id,
    title: null,
    phase: 'chat',
    mode: 'agent',
    activeAgent: 'pm',
    length: 2,
    updatedAt: '2026-11-21T20:39:00.000Z',
    ...{ tokens: 0, usd: 0, unpricedCalls: 0, activity: [] },
    ...{ running: [], waiting: [], limited: [], stopped: [], ...used },
  });
  const stopped = [row('b'), row('c', { stopped: ['dev'] }), row('d', { stopped: ['dev', 'pm'] })];
  const pages = () =>
    fakeDaemon({
      conversations: ({ after }: { after?: string }) =>
        after ? { conversations: stopped, next: null } : { conversations: [row('a', USED)], next: 'a' },
    });

  it('`parley ls` of no conversation names the command that starts one, with its own flags', async () => {
    const daemon = fakeDaemon({ conversations: { conversations: [], next: null } });
    const { err } = await parley(['ls', '--prefix', 'other'], { daemon });
    expect(err).toBe('no conversations yet: start one with `parley chat --prefix other`\n');
  });

  it('`parley ls` prints all pages as one table', async () => {
    const { code, out } = await parley(['ls'], { daemon: pages() });
    expect(code).toBe(0);
    expect(out.split('\n')).toEqual([
      'ID  TITLE  PHASE  MODE   TALKING  STATUS               WAITS FOR  LENGTH  TOKENS  USD      UPDATED',
      'a   -      chat   agent  pm       pm limited           -          2       12345   $0.0310  2026-11-21 20:39',
      'b   -      chat   agent  pm       -                    -          2       0       -        2026-11-21 20:39',
      'c   -      chat   agent  pm       dev is stopped       -          2       0       -        2026-11-21 20:39',
      'd   -      chat   agent  pm       dev, pm are stopped  -          2       0       -        2026-11-21 20:39',
      '',
    ]);
  });

  it('`parley ls --json` prints one conversation per line', async () => {
    expect((await parley(['ls', '--json'], { daemon: pages() })).json()).toMatchObject([
      row('a', USED),
      row('b'),
      { id: 'c', stopped: ['dev'] },
      { id: 'd' },
    ]);
  });

  it('`parley ls` explains how to begin, separate from the result', async () => {
    const daemon = fakeDaemon({ conversations: { conversations: [], next: null } });
    const { out, err } = await parley(['ls'], { daemon });
    expect([out, err]).toEqual(['', expect.stringContaining('parley chat')]);
  });
});

describe('turns', () => {
  const turn = {
    ...{ conversation: 'a', title: null, turnId: 't', agent: 'pm', index: 1, answer: 2, ms: 1_500, calls: 1 },
    ...{
      startedAt: '2026-11-21T20:39:00.000Z',
      outcome: 'completed',
      models: ['m1'],
      tools: ['shell'],
      rated: ['up'],
    },
    ...{ tokens: 30, usd: 0.5, unpricedCalls: 0 },
  };
  const daemon = () =>
    fakeDaemon({
      turns: ({ after }: { after?: string }) =>
        after ? { turns: [turn], next: 'a:1' } : { turns: [turn, turn], next: 'a:2' },
    });

  it('`parley turns` reads pages up to the limit, and says that there may be more', async () => {
    const { out, err } = await parley(['turns', '--limit', '3'], { daemon: daemon() });
    expect(out.split('\n').slice(0, 2)).toEqual([
      'STARTED           CONVERSATION  ENTRY  AGENT  MODEL  OUTCOME    SECONDS  TOKENS  USD      TOOLS  RATED',
      '2026-11-21 20:39  a             2      pm     m1     completed  1.5      30      $0.5000  shell  up',
    ]);
    expect(out.trim().split('\n')).toHaveLength(4);
    expect(err).toContain('there may be more: only 3 are printed');
  });

  it('tables and filters of people have the time of their zone, in summer and in winter; programs get UTC', async () => {
    const { TZ } = process.env;
    onTestFinished(() => {
      process.env.TZ = TZ;
    });
    process.env.TZ = 'America/New_York';
    const asked = daemon();
    const { out } = await parley(['turns', '--since', '2026-07-01', '--limit', '1'], { daemon: asked });
    expect(out).toContain('2026-11-21 15:39');
    await parley(['turns', '--since', '2026-11-21T15:00', '--json'], { daemon: asked });
    const search = { hits: [], pending: 0 };
    const searched = fakeDaemon({ search });
    await parley(['search', 'x', '--after', '2026-11-21T10:00:00+02:00', '--before', '2026-12-01'], {
      daemon: searched,
    });
    const bodies = [...asked.requests, ...searched.requests].map(({ body }) => body);
    expect(bodies[0]).toMatchObject({ since: '2026-07-01T04:00:00.000Z' });
    expect(bodies).toContainEqual(expect.objectContaining({ since: '2026-11-21T20:00:00.000Z' }));
    expect(bodies.at(-1)).toMatchObject({
      after: '2026-11-21T08:00:00.000Z',
      before: '2026-12-01T05:00:00.000Z',
    });
    expect((await parley(['turns', '--since', 'yesterday'], { daemon: asked })).code).toBe(2);
  });

  it('`parley turns` prints CSV or JSON Lines', async () => {
    const csv = await parley(['turns', '--csv', '--limit', '3'], { daemon: daemon() });
    expect(csv.out).toMatch(/^conversation,title,agent,.*\r\na,,pm,m1,completed,/);
    expect((await parley(['turns', '--json', '--limit', '3'], { daemon: daemon() })).json()).toHaveLength(3);
  });
});

it('`parley search` without a word says how to call it, and asks no daemon', async () => {
  const { code, err } = await parley(['search', ''], { daemon: fakeDaemon({}) });
  expect([code, err]).toEqual([2, expect.stringContaining('parley search WORD')]);
});

describe('show', () => {
  it('`parley show --json` prints the whole log page by page, one entry per line', async () => {
    const daemon = fakeDaemon();
    daemon.say(...[0, 1, 2, 3, 4].map((index) => person(index, `m${index}`)));
    expect((await parley(['show', 'c', '--json'], { daemon })).json()).toEqual(daemon.log);
    expect((await parley(['show', 'c', '--from', '3'], { daemon })).out).toMatch(/^ +3 .*m3\n +4 .*m4\n$/s);
  });

  it('`parley show --cost` prints the use of each call, and the sum for each agent', async () => {
    const usage = { inputTokens: 1_200, cachedInputTokens: 1_000, outputTokens: 30, usd: 0.0015 };
    const used = { calls: 2, inputTokens: 2_400, cachedInputTokens: 1_000, outputTokens: 60, usd: 0.003 };
    const none = { calls: 0, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, usd: 0 };
    const daemon = fakeDaemon({ conversation: { ...DETAIL, metadata: { usage: { pm: used, dev: none } } } });
    const written = { writtenBy: 'model', usage: { inputTokens: 10, outputTokens: 2 } };
    const title = { type: 'title-set', title: 'Hi', ...written };
    daemon.say(person(0, 'hi'), agent(1, 'pm', 'yes', { usage }), { ...person(2, ''), ...title } as Entry);
    const { out } = await parley(['show', 'c', '--cost'], { daemon });
    expect(out).toMatch(/yes\n {17}1,200 tokens in \(1,000 cached\), 30 out, \$0\.0015\n/);
    expect(out).toMatch(/title: Hi\n {17}10 tokens in, 2 out, cost unknown\n/);
    expect(out.split('\n').slice(-4)).toEqual([
      'AGENT  CALLS  TOKENS IN  CACHED  TOKENS OUT  COST',
      'pm     2      2,400      1,000   60          $0.0030',
      'all    2      2,400      1,000   60          $0.0030',
      '',
    ]);
    expect((await parley(['show', 'c'], { daemon })).out).not.toContain('1,200');
    expect((await parley(['show', 'c', '--cost', '--json'], { daemon })).json()).toEqual(daemon.log);
  });

  it('`parley show` fails for a conversation that does not exist', async () => {
    expect(await parley(['show', 'c'])).toMatchObject({ code: 1, out: '' });
  });

  it('`parley show` reports where the log ends if it should start after the end', async () => {
    const daemon = fakeDaemon();
    daemon.say(person(0, 'hi'), person(1, 'again'));
    const ran = await parley(['show', 'c', '--from', '9'], { daemon });
    expect(ran).toMatchObject({ code: 0, out: '', err: 'the log of c ends with entry 1\n' });
  });
});

describe('tail', () => {
  async function noted(argv: string[], ...log: Entry[]): Promise<string> {
    const daemon = fakeDaemon();
    daemon.say(...log);
    const running = start(['tail', 'c', ...argv], { daemon });
    await expect.poll(() => running.listeners()).toBe(1);
    await expect.poll(() => daemon.followed).toBe(1);
    running.signal('SIGINT');
    return (await running.done).err;
  }

  it('`parley tail` reports on stderr that it starts after the end, and where the log ends', async () => {
    expect(await noted(['--from', '99999'], person(0, 'hi'))).toBe(
      'waiting for entry 99999: the log of c ends with entry 0\n',
    );
    expect(await noted(['--from', '3'])).toBe('waiting for entry 3: the log of c has no entry yet\n');
    expect(await noted([])).toBe('waiting for entry 0: the log of c has no entry yet\n');
  });

  it('`parley tail` prints no such notice if it starts at the next entry', async () => {
    expect(await noted(['--from', '1'], person(0, 'hi'))).toBe('');
    expect(await noted([], person(0, 'hi'))).toBe('');
  });
});

describe('the commands that change a conversation', () => {
  const FLOOR = 'c: phase plan, mode agent, dev has the floor\n';
  const RUN = ['mode', 'c', 'run', '--workflow', 'w'];

  it.each<[string[], string, object, string]>([
    [['phase', 'c', 'plan'], 'phase', { phase: 'plan' }, FLOOR],
    [['mode', 'c', 'agent', '--agent', 'dev'], 'mode', { mode: 'agent', agent: 'dev' }, FLOOR],
    [['mode', 'c', 'run', '--workflow', 'w'], 'mode', { mode: 'run', workflow: 'w' }, FLOOR],
    [[...RUN, '--input', 'a clock'], 'mode', { mode: 'run', workflow: 'w', input: 'a clock' }, FLOOR],
    [['stop', 'c'], 'stop', {}, 'c: the conversation is stopped\n'],
    [['resume', 'c', 'dev'], 'resume', { agent: 'dev' }, 'c: dev is resumed\n'],
    [['rm', 'c'], 'delete', { publisher: undefined }, 'c is deleted\n'],
  ])('%j sends the request %s', async (argv, endpoint, fields, text) => {
    const daemon = fakeDaemon({ conversation: DETAIL, [endpoint]: DETAIL });
    expect(await parley(argv, { daemon })).toMatchObject({ code: 0, out: text, err: '' });
    const body = { conversation: 'c', publisher: 'alice', ...fields };
    expect(daemon.requests.at(-1)).toEqual({ endpoint, body });
    expect((await parley([...argv, '--json'], { daemon })).json()).toEqual([DETAIL]);
  });

  it('rm says why a conversation stays', async () => {
    const daemon = fakeDaemon({ delete: { deleted: false, kept: 'a turn runs' } });
    expect(await parley(['rm', 'c'], { daemon })).toMatchObject({ code: 0, out: 'c stays: a turn runs\n' });
  });

  it('resume says which limit of the conversation ends the next turn too, and its key', async () => {
    const agents = {
      dev: { status: 'limited', limit: 'usdPerConversation' },
      qa: { status: 'limited', limit: 'turnSeconds' },
      pm: { status: 'limited', limit: 'tokensPerConversation' },
    };
    const daemon = fakeDaemon({ conversation: { ...DETAIL, agents }, resume: DETAIL });
    const ran = await parley(['resume', 'c', 'dev'], { daemon });
    expect([ran.code, ran.out]).toEqual([0, 'c: dev is resumed\n']);
    expect(ran.err).toMatch(
      /^parley: limits\.usdPerConversation ended the last turn of dev, .*`\S+ reload`.*\n$/,
    );
    const all = await parley(['resume', 'c'], { daemon });
    expect(all.err.match(/limits\.\w+/g)).toEqual([
      'limits.usdPerConversation',
      'limits.tokensPerConversation',
    ]);
  });

  it('the name of the acting user is encoded for a subject', async () => {
    const daemon = fakeDaemon({ phase: DETAIL });
    await parley(['phase', 'c', 'plan'], { daemon, io: { userName: 'jo.doe' } });
    await parley(['phase', 'c', 'plan'], { daemon, io: { userName: null } });
    await parley(['phase', 'c', 'plan', '--nats-user', 'bob'], { daemon });
    const atBobs = { PARLEY_NATS_URL: 'nats://bob:secret@127.0.0.1:1' };
    await parley(['phase', 'c', 'plan'], { daemon, env: atBobs });
    await parley(['phase', 'c', 'plan', '--publisher', 'carol'], { daemon, env: atBobs });
    expect(daemon.requests.map(({ body }) => (body as { publisher: string }).publisher)).toEqual([
      'jo_doe',
      'cli',
      'bob',
      'bob',
      'carol',
    ]);
  });

  it.each([
    ['phase', 'c', 'plan'],
    ['mode', 'c', 'agent'],
    ['stop', 'c'],
    ['resume', 'c'],
    ['approve', 'a1'],
    ['deny', 'a1'],
    ['resolve', 'a1', '--rerun'],
    ['say', 'c', 'hello'],
  ])('%s acts as the same person with the same options', async (...argv) => {
    const answers = { phase: DETAIL, mode: DETAIL, stop: DETAIL, conversation: DETAIL, resume: DETAIL };
    const daemon = fakeDaemon({ ...answers, answer: { accepted: true } });
    const ran = await parley([...argv, '--as', 'Al Ice', '--publisher', 'office'], { daemon });
    expect(ran.code).toBe(0);
    const sent = daemon.posts[0] ?? daemon.requests.at(-1)?.body;
    expect(sent).toMatchObject({ publisher: 'office', author: { name: 'Al Ice' } });
    const refused = await parley([...argv, '--publisher', 'a b'], { daemon });
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('A publisher is 1 to 128')]);
  });
});

describe('agents', () => {
  const listed = { phases: ['chat'], modes: [], runtime: 'local', status: 'idle' };
  const pm = { slug: 'pm', name: 'PM', description: 'plans', ...listed };
  it('`parley agents` lists the roster', async () => {
    const daemon = fakeDaemon({ agents: { agents: [pm] } });
    expect((await parley(['agents'], { daemon })).out).toContain('pm    PM    chat    -      idle    plans');
    expect((await parley(['agents', '--json'], { daemon })).json()).toEqual([pm]);
  });
});

describe('say', () => {
  it.each([
    ['DEV', 'there is no agent "DEV": a slug is lower case', 'did you mean dev?'],
    ['Kevin K', 'there is no agent "Kevin K": a slug is lower case', 'known agents: pm, dev'],
  ])('`parley say` refuses --to %s before it posts, and names the agents', async (to, message, hint) => {
    const agents = ['pm', 'dev'].map((slug) => ({ slug }));
    const daemon = fakeDaemon({ agents: { agents } });
    const ran = await parley(['say', 'c', 'hi', '--to', `pm,${to}`], { daemon });
    expect(ran).toMatchObject({ code: 1, out: '', err: `parley: ${message}\n  ${hint}\n` });
    expect(daemon.posts).toEqual([]);
  });
});
