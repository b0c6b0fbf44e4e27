import { describe, expect, it } from 'vitest';
import { perTest } from '../support/lifetime.ts';
import { followUntil, ofType } from '../support/log.ts';
import { openProject } from '../support/project.ts';

describe('the shipped offline team', () => {
  const project = perTest(() => openProject({ nats: {} }));

  it('the offline team runs its workflow: plan, build, one failed check, repair, check, report', async () => {
    const daemon = await project.up();
    const client = await project.connect();
    await client.request('mode', {
      conversation: 'demo',
      mode: 'run',
      workflow: 'ship-it',
      input: 'Rename my photos by date.',
      publisher: 'alice',
    });
    const entries = await followUntil(client, 'demo', (known) => ofType(known, 'run-ended').length > 0);
    expect(ofType(entries, 'node-entered').map(({ node, outcome }) => [node, outcome])).toEqual([
      ['plan', undefined],
      ['implement', 'planned'],
      ['verify', 'implemented'],
      ['implement', 'failed'],
      ['verify', 'implemented'],
      ['reflect', 'passed'],
    ]);
    expect(ofType(entries, 'run-ended')).toMatchObject([{ outcome: 'reported' }]);
    expect(await daemon.stop()).toBe(0);
  });

  it('the offline team hands a clear task to the Developer', async () => {
    const daemon = await project.up();
    const client = await project.connect();
    await client.post({ conversation: 'demo', publisher: 'alice', content: 'Please build a link shortener' });
    const entries = await followUntil(client, 'demo', (known) =>
      ofType(known, 'turn-ended').some(({ agent }) => agent === 'dev'),
    );
    expect(ofType(entries, 'handoff')).toMatchObject([
      { from: 'pm', to: 'dev', summary: expect.stringContaining('a link shortener') },
    ]);
    expect(await daemon.stop()).toBe(0);
  });
});
