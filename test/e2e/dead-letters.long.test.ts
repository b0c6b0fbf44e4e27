import { appendFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { shared } from '../support/lifetime.ts';
import { entriesOf } from '../support/log.ts';
import { startProject, TEAM } from '../support/project.ts';

/** Refused posts, managed from the command line. */
describe('dead letters', () => {
  const project = shared(() => {
    const settings = {
      defaultAgent: 'pm',
      models: { default: { provider: 'scripted', script: 'script.yaml' } },
    };
    const files = { 'script.yaml': { rules: [{ reply: { text: 'fine' } }] } };
    return startProject({ nats: {}, settings, files });
  });
  const { nats, daemon } = project;

  /** Each post is refused before the next one is sent, so that the numbers are known. */
  async function postRaw(
    ...posts: readonly (readonly [publisher: string, body: string, conversation?: string])[]
  ): Promise<void> {
    const connection = await openNats({ url: nats.url });
    const client = await project.connect();
    const count = async () => (await client.request('dead', {})).letters.length;
    for (const [publisher, body, conversation = 'demo'] of posts) {
      const before = await count();
      await connection.jetstream().publish(`parley.in.${publisher}.${conversation}`, Buffer.from(body));
      await expect.poll(count).toBe(before + 1);
    }
    await connection.close();
  }

  async function listed(...args: readonly string[]): Promise<{ sequence: number; code: string }[]> {
    return (await project.parley('dead', 'ls', '--json', ...args)).json() as {
      sequence: number;
      code: string;
    }[];
  }

  it('dead letters are listed, shown, and posted again once their cause is fixed', async () => {
    await postRaw(
      ['alice', '{"content":"first wish","to":["ada"]}'],
      ['alice', '{oops'],
      ['bob', '{"content":"second wish","to":["ada"],"id":"b-1"}'],
      ['bob', JSON.stringify({ content: 'x'.repeat(140_000), to: ['ada'] })],
    );
    expect((await listed()).map(({ code }) => code)).toEqual([
      'UNKNOWN_AGENT',
      'UNKNOWN_AGENT',
      'MALFORMED_JSON',
      'UNKNOWN_AGENT',
    ]);
    expect(
      (await listed('--publisher', 'alice', '--code', 'UNKNOWN_AGENT')).map(({ sequence }) => sequence),
    ).toEqual([1]);
    const table = await project.parley('dead', 'ls', '--conversation', 'demo');
    expect(table.stdout).toMatch(/^NO .*\n4 .* bob .* 140027 .*UNKNOWN_AGENT/);
    const shown = await project.parley('dead', 'show', '1');
    expect(shown.stdout).toContain('there is no agent "ada"');
    expect(shown.stdout).toContain('"first wish"');
    const cut = await project.parley('dead', 'show', '4');
    expect(cut.stdout).toContain('the rest was cut, message 4 of the ingress stream');

    expect(await daemon.stop()).toBe(0);
    await writeFile(join(project.config, 'agents', 'ada.md'), `${TEAM.pm?.replace('Pam', 'Ada')}\n`);
    await project.up();
    const retried = await project.parley('dead', 'retry', '--all');
    expect(retried.code).toBe(1); // two of them cannot be fixed
    expect(retried.stdout).toMatch(/^1: is now entry 0 of demo\n3: is now entry \d+ of demo\n$/);
    expect(retried.stderr).toContain('nats stream get PARLEY_IN 4');
    expect((await listed()).map(({ sequence }) => sequence)).toEqual([4, 2]);
    const discarded = await project.parley('dead', 'discard', '2', '4');
    expect([discarded.code, discarded.stdout]).toEqual([0, '2: discarded\n4: discarded\n']);
    expect(await listed()).toEqual([]);
    expect(await project.parley('dead', 'discard', '2')).toMatchObject({ code: 1 });
    const entries = await entriesOf(await project.connect(), 'demo');
    const people = entries.filter((entry) => entry.type === 'message' && entry.role === 'user');
    expect(people).toMatchObject([
      { content: 'first wish', author: { id: 'alice' }, id: expect.stringMatching(/^in-1-/) },
      { content: 'second wish', author: { id: 'bob' }, id: 'b-1' },
    ]);
  });

  it('dead letters of a damaged log are posted again once the log is restored', async () => {
    await project.parley('say', 'broken', 'before', '--wait');
    expect(await daemon.stop()).toBe(0);
    const log = join(project.data, 'conversations', 'broken', 'log.jsonl');
    const sound = await project.logFile('broken');
    await writeFile(log, `damage\n${sound}`);
    await project.up();
    const said = await project.parley('say', 'broken', 'meanwhile', '--id', 'm-9');
    expect(said.stderr).toContain('is damaged at line 1');
    await postRaw(['alice', '{"content":"meanwhile","id":"m-9"}', 'broken']);
    expect(await daemon.stop()).toBe(0);
    await rm(log);
    await appendFile(log, sound);
    await project.up();
    const retried = await project.parley('dead', 'retry', '--all', '--code', 'LOG_CORRUPT');
    expect(retried).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/is now entry \d+ of broken\n$/),
    });
    expect(await listed('--code', 'LOG_CORRUPT')).toEqual([]);
    const entries = await entriesOf(await project.connect(), 'broken');
    expect(entries.filter(({ id }) => id === 'm-9')).toHaveLength(1);
  });
});
