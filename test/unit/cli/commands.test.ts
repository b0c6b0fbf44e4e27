import { describe, expect, it } from 'vitest';
import { fakeDaemon, parley, person } from './support.ts';

const DETAIL = { id: 'c', phase: 'plan', mode: 'agent', activeAgent: 'dev', length: 3, agents: {} };

describe('ls', () => {
  const row = (id: string) => ({
    id,
    title: null,
    phase: 'chat',
    mode: 'agent',
    activeAgent: 'pm',
    length: 2,
    updatedAt: '2026-11-21T20:39:00.000Z',
  });
  const pages = () =>
    fakeDaemon({
      conversations: ({ after }: { after?: string }) =>
        after ? { conversations: [row('b')], next: null } : { conversations: [row('a')], next: 'a' },
    });

  it('lists every page as a table', async () => {
    const { code, out } = await parley(['ls'], { daemon: pages() });
    expect(code).toBe(0);
    expect(out.split('\n')).toEqual([
      'ID  TITLE  PHASE  MODE   TALKING  LENGTH  UPDATED',
      'a   -      chat   agent  pm       2       2026-11-21 20:39',
      'b   -      chat   agent  pm       2       2026-11-21 20:39',
      '',
    ]);
  });

  it('prints one conversation a line with --json', async () => {
    expect((await parley(['ls', '--json'], { daemon: pages() })).json()).toEqual([row('a'), row('b')]);
  });

  it('tells a newcomer how to begin, beside the result', async () => {
    const daemon = fakeDaemon({ conversations: { conversations: [], next: null } });
    const { out, err } = await parley(['ls'], { daemon });
    expect([out, err]).toEqual(['', expect.stringContaining('parley chat')]);
  });
});

describe('show', () => {
  it('prints the whole log over page after page, one entry a line with --json', async () => {
    const daemon = fakeDaemon();
    daemon.say(...[0, 1, 2, 3, 4].map((index) => person(index, `m${index}`)));
    expect((await parley(['show', 'c', '--json'], { daemon })).json()).toEqual(daemon.log);
    expect((await parley(['show', 'c', '--from', '3'], { daemon })).out).toMatch(/^ +3 .*m3\n +4 .*m4\n$/s);
  });

  it('fails for a conversation that does not exist', async () => {
    expect(await parley(['show', 'c'])).toMatchObject({ code: 1, out: '' });
  });
});

describe('switches', () => {
  it.each([
    [
      ['phase', 'c', 'plan'],
      'phase',
      { conversation: 'c', phase: 'plan', publisher: 'alice' },
      'c: phase plan, mode agent, dev has the floor\n',
    ],
    [
      ['mode', 'c', 'agent', '--agent', 'dev'],
      'mode',
      { conversation: 'c', mode: 'agent', agent: 'dev', publisher: 'alice' },
      'c: phase plan, mode agent, dev has the floor\n',
    ],
    [
      ['mode', 'c', 'run', '--workflow', 'w'],
      'mode',
      { conversation: 'c', mode: 'run', workflow: 'w', publisher: 'alice' },
      'c: phase plan, mode agent, dev has the floor\n',
    ],
    [['stop', 'c'], 'stop', { conversation: 'c', publisher: 'alice' }, 'c: everybody is stopped\n'],
    [
      ['resume', 'c', 'dev'],
      'resume',
      { conversation: 'c', agent: 'dev', publisher: 'alice' },
      'c: dev may go on\n',
    ],
    [['rm', 'c'], 'delete', { conversation: 'c' }, 'c is deleted\n'],
  ])('%j asks for %s', async (argv, endpoint, body, text) => {
    const daemon = fakeDaemon({ [endpoint]: DETAIL });
    expect(await parley(argv, { daemon })).toMatchObject({ code: 0, out: text, err: '' });
    expect(daemon.requests).toEqual([{ endpoint, body }]);
    expect((await parley([...argv, '--json'], { daemon })).json()).toEqual([DETAIL]);
  });

  it('name who acts as a subject can hold it', async () => {
    const daemon = fakeDaemon({ phase: DETAIL });
    await parley(['phase', 'c', 'plan'], { daemon, io: { userName: 'jo.doe' } });
    await parley(['phase', 'c', 'plan'], { daemon, io: { userName: null } });
    await parley(['phase', 'c', 'plan', '--nats-user', 'bob'], { daemon });
    expect(daemon.requests.map(({ body }) => (body as { publisher: string }).publisher)).toEqual([
      'jo_doe',
      'cli',
      'bob',
    ]);
  });
});

describe('agents', () => {
  const pm = {
    slug: 'pm',
    name: 'PM',
    description: 'plans',
    phases: ['chat'],
    modes: [],
    runtime: 'local',
    status: 'idle',
  };

  it('lists the roster', async () => {
    const daemon = fakeDaemon({ agents: { agents: [pm] } });
    expect((await parley(['agents'], { daemon })).out).toContain('pm    PM    chat    -      idle    plans');
    expect((await parley(['agents', '--json'], { daemon })).json()).toEqual([pm]);
  });
});

describe('explain', () => {
  it('takes a server or a directory, not both', async () => {
    const ran = await parley(['explain', 'c', '--agent', 'pm', '--nats', 'nats://x', '--data', 'd']);
    expect(ran.code).toBe(2);
    expect(ran.err).toMatch(/--nats and --data exclude each other/);
  });

  const view = { messages: [{ role: 'user', content: 'hi' }], report: { tokens: 1 } };

  it('asks the daemon', async () => {
    const daemon = fakeDaemon({ view });
    const ran = await parley(['explain', 'c', '--agent', 'pm', '--at', '3', '--json'], { daemon });
    expect(ran.json()).toEqual([view]);
    expect(daemon.requests).toEqual([{ endpoint: 'view', body: { conversation: 'c', agent: 'pm', at: 3 } }]);
    expect((await parley(['explain', 'c', '--agent', 'pm'], { daemon })).out).toContain('── 0 user ──\nhi');
  });

  it('reads the files alone with --data', async () => {
    const asked: unknown[] = [];
    const config = { daemon: { data: '/some/data' } };
    const loadConfig = async (options: unknown) => {
      asked.push(options);
      return config as never;
    };
    const explainOffline = async (options: unknown) => {
      asked.push(options);
      return view;
    };
    const daemon = fakeDaemon();
    const argv = ['explain', 'c', '--agent', 'pm', '--data', 'data', '--config', 'conf', '--json'];
    const ran = await parley(argv, { daemon, rooms: { loadConfig }, daemonRoom: { explainOffline } });
    expect(ran.json()).toEqual([view]);
    expect(asked).toMatchObject([
      { configDirectory: 'conf', flags: { data: 'data' } },
      { dataDirectory: '/some/data', config, conversation: 'c', agent: 'pm' },
    ]);
    expect(daemon.connections).toEqual([]);
  });
});
