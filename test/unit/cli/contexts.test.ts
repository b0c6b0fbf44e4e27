import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ParleyError } from '../../../src/client/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';
import { parley } from './support.ts';

const home = folderPerTest();

/** Runs a command; `url`: the server that it tried to reach. */
async function run(argv: readonly string[], env: Record<string, string> = {}) {
  let seen: { url?: unknown } = {};
  const connect = async (options: { url?: unknown }): Promise<never> => {
    seen = options;
    throw new ParleyError('STOPPED', 'this test goes no further');
  };
  const stop = async (): Promise<never> => {
    throw new ParleyError('STOPPED', 'this test goes no further');
  };
  const dependencies = { connect, loadConfig: stop, daemon: stop };
  return {
    ...(await parley([...argv], {
      dependencies,
      env: { XDG_CONFIG_HOME: home, PARLEY_NATS: '', PARLEY_NATS_URL: '', ...env },
    })),
    url: () => seen.url,
    options: () => seen,
  };
}
/** Writes the file of saved servers. */
async function save(contexts: Record<string, unknown>, selected?: string): Promise<void> {
  await mkdir(join(home, 'parley'), { recursive: true });
  await writeFile(join(home, 'parley', 'contexts.json'), JSON.stringify({ selected, contexts }));
}

describe('saved servers', () => {
  it('are used when selected, when named, and by PARLEY_CONTEXT, and not when something else names a daemon', async () => {
    const servers = { prod: { nats: 'nats://prod:4222' }, test: { nats: 'nats://test:4222' } };
    await save(servers, 'prod');
    const test = { PARLEY_CONTEXT: 'test' };
    expect((await run(['ls'], test)).url()).toBe('nats://test:4222');
    expect((await run(['ls', '--context', 'test'], { PARLEY_NATS_URL: 'nats://x:1' })).url()).toBe(
      'nats://test:4222',
    );
    expect((await run(['ls', '--nats', 'nats://x:1'], test)).url()).toBe('nats://x:1');
    expect((await run(['ls'], { PARLEY_NATS_URL: 'nats://y:1' })).url()).toBe('nats://y:1');
    expect((await run(['ls'])).url()).toBe('nats://prod:4222');
    await save(servers);
    expect((await run(['ls'])).err).toContain('no running daemon found');
  });

  it('have their credentials in files, by paths relative to their file, and no password', async () => {
    await save({ prod: { nats: 'nats://prod:4222', natsUser: 'ann', natsPasswordFile: 'pw' } }, 'prod');
    const { options } = await run(['ls']);
    expect(options()).toMatchObject({ user: 'ann', passwordFile: join(home, 'parley', 'pw') });
    await save({ prod: { nats: 'nats://prod:4222', natsPassword: 'hunter2' } }, 'prod');
    const refused = await run(['ls']);
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('prod.natsPassword')]);
    expect(refused.err).not.toContain('hunter2');
  });

  it.each([
    [['ls', '--context', 'nothing'], 'there is no context nothing'],
    [['ls', '--context', 'prod', '--nats', 'nats://x:1'], '--context names the server, and so does --nats'],
    [['up', '--context', 'prod'], '--context has no effect here'],
  ])('%j is refused', async (argv, message) => {
    const ran = await run(argv);
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining(message)]);
  });
});
