import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { layCable } from '../support/cable.ts';
import { itLong } from '../support/long.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { openProject, type Project, type RunningDaemon } from '../support/project.ts';

/** Three addresses: nothing listens at the first, the other two lead to one server. */
describe('a daemon with several NATS servers', () => {
  let nats: TestNatsServer;
  let project: Project;
  let daemon: RunningDaemon;
  const cables: Awaited<ReturnType<typeof layCable>>[] = [];
  let urls: string[];

  beforeAll(async () => {
    nats = await startNatsServer({ config: 'authorization { user: al, password: geheim }' });
    const down = await startNatsServer();
    await down.stop();
    for (let place = 0; place < 2; place++) cables.push(await layCable(nats.url));
    urls = [down.url, ...cables.map(({ url }) => url.replace('http:', 'nats:'))];
    project = await openProject({ nats: urls.map((url) => url.replace('//', '//al:geheim@')).join(',') });
    daemon = await project.up();
  });
  afterAll(async () => {
    await project?.close();
    for (const cable of cables) await cable.close();
    await nats?.stop();
  });

  it('a daemon with several servers starts while the first one is down, and reports all of them', () => {
    expect(daemon.ready.nats).toBe(urls.join(','));
  });

  it('a daemon with several servers writes all of them to the connection file for commands', async () => {
    const said = await project.parley('say', 'team', 'Hello', '--wait');
    expect(said.code).toBe(0);
    expect(said.stdout).not.toBe('');
  });

  it('daemon and commands fail over to the next server when the current one is lost', async () => {
    const before = cables[1]?.connections;
    expect(before).toBe(0);
    cables[0]?.cut();
    const said = await project.parley('say', 'team', 'Hello again', '--wait');
    expect(said.code).toBe(0);
    expect(said.stdout).not.toBe('');
    expect(cables[1]?.connections).toBeGreaterThan(0);
  });

  itLong.each([true, false])(
    'doctor checks each of several servers (servers named again: %s)',
    async (isNamed) => {
      const nats = urls.map((url) => url.replace('//', '//al:geheim@')).join(',');
      const flags = isNamed ? ['--nats', nats] : [];
      const found = await project.parley('doctor', '--json', '--config', project.config, ...flags);
      expect(found.json()).toContainEqual(
        expect.objectContaining({ name: 'nats-server', message: expect.stringMatching(/^not needed/) }),
      );
      const servers = found.json().filter(({ name }) => name.startsWith('server '));
      expect(servers.map(({ name, status }) => [name, status])).toEqual([
        [`server ${urls[0]}`, 'warn'],
        [`server ${urls[1]}`, 'warn'],
        [`server ${urls[2]}`, 'ok'],
      ]);
      expect(found.stdout + found.stderr + daemon.stderr()).not.toContain('geheim');
    },
  );
});
