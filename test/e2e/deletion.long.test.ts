import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { entriesOf } from '../support/log.ts';
import { openProject } from '../support/project.ts';

describe('a deleted conversation', () => {
  const project = perTest(() => openProject({ nats: {} }));

  it('a conversation stays deleted if the daemon is killed at once and its position in the stream is lost (POSTS-4)', async () => {
    const first = await project.up();
    await project.parley('say', 'secret', 'forget this', '--wait');
    await project.parley('say', 'kept', 'keep this', '--wait');
    expect((await project.parley('rm', 'secret')).code).toBe(0);
    await first.kill9();
    await rm(join(project.data, 'ingress.json'), { force: true });

    const second = await project.up();
    await project.parley('say', 'kept', 'the stream is read again up to here', '--wait');
    const listed = (await project.parley('ls', '--json')).json().map(({ id }) => id);
    expect(listed).toEqual(['kept']);

    await project.parley('say', 'secret', 'a new beginning', '--wait');
    const entries = await entriesOf(await project.connect(), 'secret');
    expect(entries[0]).toMatchObject({ index: 0, content: 'a new beginning' });
    expect(await second.stop()).toBe(0);
  });
});
