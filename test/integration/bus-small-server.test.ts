import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { closeConnection, openNats } from '../../src/bus/nats/index.ts';
import { ensureStreams } from '../../src/bus/nats/streams/streams.ts';
import { createSubjects } from '../../src/bus/subjects.ts';
import { startNatsServer } from '../support/nats-server.ts';

it('a server with little storage gets a smaller stream of dead letters, with a warning in the log (NATS-STREAMS-4)', async () => {
  const store = await mkdtemp(join(tmpdir(), 'parley-little-'));
  const config = `jetstream { store_dir: ${JSON.stringify(store)}, max_file: 50000000 }`;
  const server = await startNatsServer({ plain: true, config });
  const connection = await openNats({ url: server.url });
  try {
    const said: string[] = [];
    const write = (_: object, message: string) => void said.push(message);
    const log = { debug: write, info: write, warn: write, error: write };
    const manager = await connection.jetstreamManager();
    const posts = await ensureStreams(manager, createSubjects(), { log });
    expect(posts.config.max_bytes).toBe(-1);
    expect((await manager.streams.info('PARLEY_DEAD')).config.max_bytes).toBe(32 * 1024 ** 2);
    expect(said.length).toBe(1);
  } finally {
    await closeConnection(connection);
    await server.stop();
    await rm(store, { recursive: true, force: true });
  }
});
