import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Config, loadConfig } from '../../../src/config/index.ts';
import type { Author } from '../../../src/conversation/index.ts';
import { changedSettings, Reloader } from '../../../src/daemon/reload/reloader.ts';
import { createTeam } from '../../../src/daemon/team/team.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { createDaemon, type TestDaemon } from './daemon.ts';

const by: Author = { kind: 'person', id: 'operator', name: 'Operator' };

describe('a reload', () => {
  const directory = folderPerTest();
  let daemon: TestDaemon;
  let settings: Record<string, unknown>;
  const close = { commit: vi.fn(), discard: vi.fn(async () => undefined) };
  const prepare = vi.fn();

  beforeEach(async () => {
    await mkdir(join(directory, 'config', 'agents'), { recursive: true });
    settings = { defaultAgent: 'pm', models: { default: { provider: 'scripted' } } };
    await persona('You plan.');
    daemon = createDaemon();
    vi.clearAllMocks();
    prepare.mockImplementation(async () => ({ toolbox: daemon.runtime.team.toolbox, ...close }));
  });
  afterEach(() => daemon.end());

  const persona = (text: string) => writeFile(join(directory, 'config', 'agents', 'pm.md'), text);

  async function load(): Promise<Config> {
    await writeFile(join(directory, 'config', 'parley.yaml'), JSON.stringify(settings));
    return loadConfig({ configDirectory: join(directory, 'config'), env: { PARLEY_HTTP: 'off' } });
  }

  async function started(): Promise<Reloader> {
    const config = await load();
    const { runtime, workers } = daemon;
    const model = runtime.remote;
    const models = async (next: Config) => new Map(Object.keys(next.models).map((name) => [name, model]));
    const { toolbox } = runtime.team;
    runtime.replaceTeam(
      createTeam(config, { toolbox, models: await models(config), remote: model, newId: runtime.newId }),
    );
    return new Reloader({
      ...{ daemon: runtime, workers, config, load, models, tools: { prepare }, onReplaced: () => undefined },
    });
  }

  it('replaces the team once where two requests come together (RELOAD-4)', async () => {
    const reloader = await started();
    const before = daemon.runtime.team;
    await persona('You plan well.');
    const [first, second] = await Promise.all([reloader.reload(by), reloader.reload(by)]);
    expect(first).toEqual({
      agents: [{ agent: 'pm', change: 'changed', parts: ['persona'] }],
      settings: ['agents/*.md'],
      conversations: 0,
    });
    expect(second).toEqual({ agents: [], settings: [], conversations: 0 });
    expect(daemon.runtime.team).not.toBe(before);
  });

  it.each<[string, () => void, object]>([
    [
      'a value that is not valid',
      () => Object.assign(settings, { retry: { attempts: 'x' } }),
      { code: 'CONFIG_INVALID' },
    ],
    [
      'a setting that needs a restart',
      () => Object.assign(settings, { ingress: { maxBytes: 99_000_000 } }),
      { code: 'RESTART_NEEDED', message: expect.stringContaining('ingress') },
    ],
    [
      'a server that needs a restart',
      () => Object.assign(settings, { shutdown: { graceMs: 1 }, nats: { server: 'nats://127.0.0.1:1' } }),
      { code: 'RESTART_NEEDED', message: 'only a restart can change shutdown, nats' },
    ],
    [
      'a tool server that does not start',
      () => prepare.mockRejectedValueOnce(new Error('no server')),
      { message: 'no server' },
    ],
  ])('changes nothing after %s, and the next one works (RELOAD-1)', async (_what, spoil, expected) => {
    const reloader = await started();
    const before = daemon.runtime.team;
    const valid = { ...settings };
    await persona('You plan well.');
    spoil();
    await expect(reloader.reload(by)).rejects.toMatchObject(expected);
    expect(daemon.runtime.team).toBe(before);
    expect(close.commit).not.toHaveBeenCalled();
    settings = valid;
    expect((await reloader.reload(by)).agents).toHaveLength(1);
  });

  it('notices a changed secret, and does not show it', async () => {
    const withKey = async (apiKey: string) => {
      Object.assign(settings, {
        models: { default: { baseURL: 'http://127.0.0.1:1/v1', model: 'm', apiKey } },
      });
      return load();
    };
    const [one, other] = [await withKey('sk-one'), await withKey('sk-two')];
    expect(changedSettings(one, other)).toEqual(['models']);
    expect(changedSettings(one, await withKey('sk-one'))).toEqual([]);
  });

  it('names an edited script of a model, and opens the models anew', async () => {
    const script = join(directory, 'config', 'script.yaml');
    await writeFile(script, 'rules: [{ reply: { text: one } }]');
    settings.models = { default: { provider: 'scripted', script: 'script.yaml' } };
    const reloader = await started();
    const before = daemon.runtime.team;
    await writeFile(script, 'rules: [{ reply: { text: two } }]');
    expect(await reloader.reload(by)).toEqual({
      agents: [],
      settings: ['models.*.script'],
      conversations: 0,
    });
    expect(daemon.runtime.team).not.toBe(before);
    expect((await reloader.reload(by)).settings).toEqual([]);
  });

  it('applies a new limit of approvals to those that wait', async () => {
    const reloader = await started();
    Object.assign(settings, { approvals: { expireAfterMs: 60_000 } });
    expect((await reloader.reload(by)).settings).toEqual(['approvals']);
    expect(daemon.runtime.team.approvalExpiryMs).toBe(60_000);
  });

  it('ends the turn of a hired agent whose model was removed (HIRING-4)', async () => {
    const scripted = { provider: 'scripted' };
    settings.models = { default: scripted, small: scripted };
    const reloader = await started();
    const { workers } = daemon;
    const agent = { slug: 'scout', persona: 'Look.', model: 'small' };
    expect(await workers.submit('c', { type: 'hire', agent, by })).toEqual({ kind: 'done' });
    const post = {
      id: 'p1',
      author: { id: 'alice', name: 'Alice' },
      content: '@scout look',
      delivery: 'queue' as const,
    };
    await workers.submit('c', { type: 'post', post });
    settings.models = { default: scripted };
    await reloader.reload(by);
    const ended = (await workers.existing('c')).entries().filter(({ type }) => type === 'turn-ended');
    expect(ended).toMatchObject([{ agent: 'scout', outcome: 'aborted' }]);
  });
});
