import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { findServers } from '../../../scripts/nats-servers.ts';
import { folderPerTest } from '../../support/lifetime.ts';

const root = folderPerTest();

async function fake(place: string, version: string): Promise<string> {
  const path = join(root, place);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  await chmod(path, 0o755);
  return path;
}

it('the tested servers are those of NATS_BINS, oldest first and each version once', async () => {
  const [a, b, c] = [await fake('a', '2.15.1'), await fake('b', '2.9.10'), await fake('c', '2.15.1')];
  const found = await findServers({ NATS_BINS: [a, b, c].join(':'), NATS_BIN: '/nowhere' });
  expect(found).toEqual([
    { version: '2.9.10', path: b },
    { version: '2.15.1', path: a },
  ]);
});

it('a server in NATS_BINS that does not run is refused by name', async () => {
  await expect(findServers({ NATS_BINS: '/nowhere' })).rejects.toThrow('NATS_BINS names /nowhere');
});

it('the tested servers are the one under test and the fetched ones', async () => {
  const own = await fake('own', '2.0.1');
  const fetched = await fake('cache/parley/nats-server/99.10.1/nats-server', '99.10.1');
  const env = { NATS_BIN: own, XDG_CACHE_HOME: join(root, 'cache') };
  const found = await findServers(env);
  expect(found[0]).toEqual({ version: '2.0.1', path: own });
  expect(found.at(-1)).toEqual({ version: '99.10.1', path: fetched });
});
