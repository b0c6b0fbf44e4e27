import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  followUntil,
  ofType,
  openProject,
  type Project,
  startNatsServer,
  type TestNatsServer,
} from '../support/index.ts';

describe('the shipped offline team', () => {
  let nats: TestNatsServer;
  let project: Project;
  beforeEach(async () => {
    nats = await startNatsServer();
    project = await openProject({ nats: nats.url });
  });
  afterEach(async () => {
    await project.close();
    await nats.stop();
  });

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
