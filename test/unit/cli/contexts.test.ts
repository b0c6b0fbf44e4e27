import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ParleyError } from '../../../src/client/index.ts';
import { parley } from './support.ts';

let home: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'parley-contexts-'));
});
afterEach(() => rm(home, { recursive: true, force: true }));

/** Runs a command; `url`: the server that it tried to reach. */
async function run(argv: readonly string[], env: Record<string, string> = {}) {
  let url: unknown = null;
  const connect = async (options: { url?: unknown }): Promise<never> => {
    url = options.url;
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
    url: () => url,
  };
}
const add = (name: string, ...more: string[]) =>
  run(['context', 'add', name, '--nats', `nats://${name}:4222`, ...more]);

describe('saved servers', () => {
  it('are used when selected, when named, and by PARLEY_CONTEXT, and not when something else names a daemon', async () => {
    await add('prod', '--nats-user', 'ann', '--nats-password-file', '/secret');
    await add('test');
    expect((await run(['context', 'use', 'prod'])).code).toBe(0);
    expect((await run(['context', 'ls'])).out).toMatch(/^prod\* +nats:\/\/prod:4222 +ann/m);
    const test = { PARLEY_CONTEXT: 'test' };
    expect((await run(['ls'], test)).url()).toBe('nats://test:4222');
    expect((await run(['ls', '--context', 'test'], { PARLEY_NATS_URL: 'nats://x:1' })).url()).toBe(
      'nats://test:4222',
    );
    expect((await run(['ls', '--nats', 'nats://x:1'], test)).url()).toBe('nats://x:1');
    expect((await run(['ls'], { PARLEY_NATS_URL: 'nats://y:1' })).url()).toBe('nats://y:1');
    expect((await run(['ls'])).url()).toBe('nats://prod:4222');
    await run(['context', 'rm', 'prod']);
    expect((await run(['ls'])).err).toContain('no running daemon found');
  });

  it('are in a file of the user alone, and contain no password', async () => {
    const added = await add('prod', '--nats-user', 'ann', '--nats-password', 'hunter2');
    expect([added.code, added.err]).toEqual([2, expect.stringContaining('--nats-password-file')]);
    expect((await run(['context', 'add', 'prod', '--nats', 'nats://ann:hunter2@x:1'])).code).toBe(2);
    await add('prod', '--nats-user', 'ann', '--nats-password-file', 'pw');
    const path = join(home, 'parley', 'contexts.json');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const text = await readFile(path, 'utf8');
    expect(text).not.toContain('hunter2');
    expect(JSON.parse(text).contexts.prod.natsPasswordFile).toMatch(/^\/.*pw$/);
  });

  it.each([
    [['ls', '--context', 'nothing'], 'there is no context nothing'],
    [['ls', '--context', 'prod', '--nats', 'nats://x:1'], '--context names the server, and so does --nats'],
    [['up', '--context', 'prod'], '--context has no effect here'],
    [['context', 'use', 'nothing'], 'there is no context nothing'],
    [['context', 'add', 'prod'], 'a context needs a server'],
    [['context', 'ls', '--nats', 'nats://x:1'], '--nats has no effect here'],
  ])('%j is refused', async (argv, message) => {
    const ran = await run(argv);
    expect([ran.code, ran.err]).toEqual([2, expect.stringContaining(message)]);
  });
});
