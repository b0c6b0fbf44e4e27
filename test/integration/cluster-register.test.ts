import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { openNats, reserveSubjects } from '../../src/bus/nats/index.ts';
import type { ParleyError } from '../../src/kernel/index.ts';
import { createProxyActor, type ProxyActor } from '../chaos/actors/proxy.ts';
import { freePort, startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { recordingLog } from '../unit/bus/support.ts';

/** On a cluster of servers a subscription reaches the other servers later than its own (REGISTER-1). */
describe('a registration on a cluster of two servers', { timeout: 60_000 }, () => {
  const closing: (() => unknown)[] = [];
  let servers: readonly TestNatsServer[];
  let route: ProxyActor;
  beforeEach(async () => {
    const port = await freePort();
    const cluster = (more: string) =>
      `cluster { name: parley, host: 127.0.0.1, no_advertise: true, connect_retries: 100, ${more} }`;
    const first = await startNatsServer({ plain: true, config: cluster(`port: ${port}`) });
    route = await createProxyActor(port);
    const second = await startNatsServer({
      plain: true,
      config: cluster(`port: ${await freePort()}, routes: ["${route.url}"]`),
    });
    servers = [first, second];
    closing.push(...servers.map((server) => () => server.stop()), () => route.close());
    await areJoined();
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  async function connectTo(server: TestNatsServer | undefined) {
    const connection = await openNats({ url: server?.url ?? '', noEcho: true });
    closing.push(() => connection.close());
    return connection;
  }

  async function areJoined(): Promise<void> {
    const [one, other] = await Promise.all(servers.map(connectTo));
    one?.subscribe('joined', { callback: (_, message) => message.respond() });
    while (!(await other?.request('joined', '', { timeout: 1_000 }).catch(() => null)));
  }

  /** Returns the codes of those that were refused. */
  async function registerTogether(): Promise<string[]> {
    const connections = await Promise.all(servers.map(connectTo));
    const outcomes = await Promise.all(
      connections.map((connection) =>
        reserveSubjects(connection, createSubjects(), recordingLog().log).catch(
          ({ code }: ParleyError) => code,
        ),
      ),
    );
    return outcomes.filter((outcome) => typeof outcome === 'string');
  }

  it.each([0, 150])(
    'exactly one of two that begin together succeeds, with a route that takes %i ms',
    async (ms) => {
      route.slow(ms);
      expect(await registerTogether()).toEqual(['MIGRATION_RUNNING']);
    },
  );
});
