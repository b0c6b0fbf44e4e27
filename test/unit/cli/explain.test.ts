import { describe, expect, it } from 'vitest';
import { fakeDaemon, parley, reportOf } from './support.ts';

describe('explain', () => {
  it('`parley explain` refuses a server and a directory together', async () => {
    const ran = await parley(['explain', 'c', '--agent', 'pm', '--nats', 'nats://x', '--data', 'd']);
    expect(ran.code).toBe(2);
    expect(ran.err).toMatch(/--nats and --data exclude each other/);
  });

  const view = { messages: [{ role: 'user', content: 'hi' }], report: reportOf() };

  it('`parley explain` sends a request to the daemon', async () => {
    const daemon = fakeDaemon({ view });
    const ran = await parley(['explain', 'c', '--agent', 'pm', '--at', '3', '--json'], { daemon });
    expect(ran.json()).toEqual([view]);
    expect(daemon.requests).toEqual([{ endpoint: 'view', body: { conversation: 'c', agent: 'pm', at: 3 } }]);
    expect((await parley(['explain', 'c', '--agent', 'pm'], { daemon })).out).toContain(
      '── 0 user · trigger · entry 0 · 11 tokens ──\nhi',
    );
  });

  it('`parley explain` without an agent compares the answer that the daemon finds', async () => {
    const daemon = fakeDaemon({ view: { ...view, report: reportOf({ agent: 'dev', answer: 7 }) } });
    const asked = (more: object) => ({ endpoint: 'view', body: { conversation: 'c', ...more } });
    expect((await parley(['explain', 'c'], { daemon })).out).toMatch(
      /^request {5}of dev, answered by entry 7$/m,
    );
    expect((await parley(['explain', 'c', '--diff'], { daemon })).out).toMatch(
      /^- dev at 7: .*\n\+ dev now: /,
    );
    expect(daemon.requests.slice(-2)).toEqual([asked({ agent: 'dev', at: 7 }), asked({ agent: 'dev' })]);
  });

  it('`parley explain --body` prints the exact bytes and nothing else, of one request only', async () => {
    const daemon = fakeDaemon({ view: { messages: [], report: reportOf(), body: '{"messages":[]}' } });
    const ran = await parley(['explain', 'c', '--agent', 'pm', '--body'], { daemon });
    expect(ran.out).toBe('{"messages":[]}');
    expect(daemon.requests).toEqual([
      { endpoint: 'view', body: { conversation: 'c', agent: 'pm', body: true } },
    ]);
    const two = await parley(['explain', 'c', '--agent', 'pm', '--body', '--diff'], { daemon });
    expect([two.code, two.err]).toEqual([2, expect.stringContaining('--body prints one request')]);
  });

  it('`parley explain` says where the log records no definition, so that the current one is shown', async () => {
    const daemon = fakeDaemon({
      view: ({ at }: { at?: number }) => ({
        ...view,
        report: reportOf({ definition: { hash: 'def', recorded: at === 11, parts: {} } }),
      }),
    });
    const explain = async (...more: string[]) =>
      (await parley(['explain', 'c', '--agent', 'pm', ...more], { daemon })).out;
    expect(await explain('--at', '11')).toMatch(/^definition {2}def$/m);
    expect(await explain('--at', '7')).toMatch(/^definition {2}the current one: the log records none/m);
    expect(await explain('--at', '7', '--diff', '11')).toMatch(
      /^- pm at 7, with the current definition: .*\n\+ pm at 11: /,
    );
    expect(await explain('--at', '11', '--diff')).toMatch(/^- pm at 11: .*\n\+ pm now: /);
  });

  it('`parley explain` compares two positions, two agents, or both', async () => {
    const daemon = fakeDaemon({
      view: ({ agent: slug, at }: { agent: string; at?: number }) => ({
        messages: [
          { role: 'system', content: `I am ${slug}` },
          { role: 'user', content: 'hi' },
          ...(at === undefined ? [{ role: 'user', content: 'new' }] : []),
        ],
        report: reportOf({
          parts: [
            { kind: 'prefix', entries: [], tokens: 40 },
            { kind: 'history', entries: [0], tokens: 11 },
            { kind: 'trigger', entries: [3], tokens: 11 },
          ],
        }),
      }),
    });
    const explain = (...more: string[]) => parley(['explain', 'c', '--agent', 'pm', ...more], { daemon });
    const { out } = await explain('--at', '3', '--diff', '--diff-agent', 'dev');
    expect(out.split('\n')).toEqual([
      '- pm at 3: 2 messages, 51 tokens',
      '+ dev now: 3 messages, 51 tokens',
      '',
      '~ 0 system · prefix · 40 tokens',
      '    was system · prefix · 40 tokens',
      '    - I am pm',
      '    + I am dev',
      '= 1 message the same',
      '+ 2 user · trigger · entry 3 · 11 tokens',
      '    new',
      '',
    ]);
    const [data] = (await explain('--at', '3', '--diff', '2', '--json')).json();
    expect(data).toMatchObject({
      before: { agent: 'pm', at: 3, tokens: 51 },
      after: { agent: 'pm', at: 2 },
      messages: [{ op: 'same' }, { op: 'same', before: { place: 1 }, after: { place: 1 } }],
    });
    await explain('--at', '3', '--diff-agent', 'dev');
    expect(daemon.requests.slice(-2).map(({ body }) => body)).toMatchObject([
      { agent: 'pm', at: 3 },
      { agent: 'dev', at: 3 },
    ]);
  });

  it('`parley explain --diff` requests the texts of the parts that differ, and --json carries the lines', async () => {
    const daemon = fakeDaemon({
      view: ({ at, texts }: { at?: number; texts?: string[] }) => ({
        messages: [],
        report: reportOf({
          definition: {
            hash: `d${at}`,
            recorded: true,
            parts: { model: 'same', persona: `p${at}` },
            ...(texts && { texts: { persona: JSON.stringify(`I am ${at}.`) } }),
          },
        }),
      }),
    });
    const explain = ['explain', 'c', '--agent', 'pm', '--at', '3', '--diff', '7'];
    const [data] = (await parley([...explain, '--json'], { daemon })).json();
    expect(data).toHaveProperty('definition', [
      {
        part: 'persona',
        op: 'changed',
        hunks: [
          {
            before: 1,
            after: 1,
            lines: [
              { op: 'gone', text: 'I am 3.' },
              { op: 'added', text: 'I am 7.' },
            ],
          },
        ],
      },
    ]);
    expect(daemon.requests.map(({ body }) => body)).toEqual([
      { conversation: 'c', agent: 'pm', at: 3 },
      { conversation: 'c', agent: 'pm', at: 7 },
      { conversation: 'c', agent: 'pm', at: 3, texts: ['persona'] },
      { conversation: 'c', agent: 'pm', at: 7, texts: ['persona'] },
    ]);
    const { out } = await parley(explain, { daemon });
    expect(out).toContain('~ definition: persona\n    @@ -1,1 +1,1 @@\n    -I am 3.\n    +I am 7.\n');
  });

  it('`parley explain --data` reads the files alone', async () => {
    const asked: unknown[] = [];
    const config = { directory: '/some/conf', daemon: { data: '/some/data' } };
    const loadConfig = async (options: unknown) => {
      asked.push(options);
      return config as never;
    };
    const explainOffline = async (options: unknown) => {
      asked.push(options);
      return view as never;
    };
    const daemon = fakeDaemon();
    const argv = ['explain', 'c', '--agent', 'pm', '--data', 'data', '--config', 'conf', '--json'];
    const ran = await parley(argv, {
      daemon,
      dependencies: { loadConfig },
      daemonModule: { explainOffline },
    });
    expect(ran.json()).toEqual([view]);
    expect(ran.err).toContain('configuration: /some/conf');
    expect(asked).toMatchObject([
      { configDirectory: 'conf', flags: { data: 'data' } },
      { dataDirectory: '/some/data', config, conversation: 'c', agent: 'pm' },
    ]);
    expect(daemon.connections).toEqual([]);
  });
});
