import { describe, expect, it } from 'vitest';
import { refusedWith } from '../../support/error-with.ts';
import { perTest } from '../../support/lifetime.ts';
import { createDaemon } from './daemon.ts';

describe('the dead letters', () => {
  const daemon = perTest(() => createDaemon({ maxPayload: 20_000 }));
  const ask = (endpoint: string, body: unknown = {}) => daemon.request(endpoint, body);
  /** A post that is refused as long as no agent is called that. */
  const toNobody = (content: string, more: object = {}) =>
    daemon.deliver({ content, to: ['nobody'], ...more });
  /** From now on the agent exists. */
  const hire = () => {
    const { agents } = daemon.runtime.team.rules.roster as unknown as { agents: Map<string, unknown> };
    agents.set('nobody', { ...(agents.get('dev') as object), slug: 'nobody', name: 'Nobody' });
  };

  it('are listed newest first, without what was posted, by pages and by code', async () => {
    await toNobody('first');
    await daemon.deliver('{oops');
    await toNobody('third');
    const listed = await ask('dead', {});
    expect(listed).toMatchObject({
      ok: true,
      body: {
        letters: [{ sequence: 3, code: 'UNKNOWN_AGENT' }, { sequence: 2 }, { sequence: 1 }],
        next: null,
      },
    });
    expect(JSON.stringify(listed)).not.toContain('third');
    expect(await ask('dead', { limit: 1, before: 3, code: 'UNKNOWN_AGENT' })).toMatchObject({
      body: { letters: [{ sequence: 1, publisher: 'alice', conversation: 'demo' }] },
    });
  });

  it('fit one answer, however long their reasons are; the next page has the rest', async () => {
    for (let n = 0; n < 60; n++) await daemon.deliver({ content: 'x', [`${'f'.repeat(70)}${n}`]: 1 });
    const seen: number[] = [];
    for (let before: number | undefined; before !== null; ) {
      const answer = await ask('dead', before === undefined ? {} : { before });
      expect(JSON.stringify(answer).length).toBeLessThan(20_000);
      const { letters, next } = (answer as { body: { letters: { sequence: number }[]; next: number | null } })
        .body;
      seen.push(...letters.map(({ sequence }) => sequence));
      before = next as number;
    }
    expect(seen).toEqual(Array.from({ length: 60 }, (_, back) => 60 - back));
  });

  it('dead letters are shown completely, and a missing one is reported as not found', async () => {
    await toNobody('the words');
    expect(await ask('dead-letter', { sequence: 1 })).toMatchObject({
      ok: true,
      body: { original: '{"content":"the words","to":["nobody"]}', size: 39, ingress: { sequence: 1 } },
    });
    for (const verb of ['dead-letter', 'dead-retry']) {
      expect(await ask(verb, { sequence: 9 })).toMatchObject({ ok: false, refusal: { code: 'NOT_FOUND' } });
    }
  });

  it('are posted again as their publishers, once, and then are gone', async () => {
    await toNobody('the words', { author: { name: 'Al' } });
    hire();
    const [one, two] = await Promise.all([
      ask('dead-retry', { sequence: 1 }),
      ask('dead-retry', { sequence: 1 }),
    ]);
    expect(one).toMatchObject({ ok: true, body: { conversation: 'demo', index: 0, duplicate: false } });
    expect(two).toMatchObject({ ok: true, body: { conversation: 'demo', index: 0, duplicate: true } });
    expect(await ask('dead-retry', { sequence: 1 })).toMatchObject(refusedWith('NOT_FOUND')); // after a lost answer
    expect(await ask('dead')).toMatchObject({ body: { letters: [] } });
    const entries = await daemon.entries();
    expect(entries.filter(({ type }) => type === 'message')).toMatchObject([
      { content: 'the words', id: 'in-1', author: { id: 'alice/Al' } },
    ]);
  });

  it('stay when the letter could not be taken away, and a further retry appends nothing (DEAD-LETTERS-1)', async () => {
    await toNobody('the words');
    hire();
    daemon.bus.control.removing = new Error('the broker is gone');
    expect(await ask('dead-retry', { sequence: 1 })).toMatchObject({ ok: false });
    expect(daemon.bus.letters.size).toBe(1);
    daemon.bus.control.removing = undefined;
    expect(await ask('dead-retry', { sequence: 1 })).toMatchObject({ ok: true, body: { duplicate: true } });
    expect(daemon.bus.letters.size).toBe(0);
    expect((await daemon.entries()).filter(({ type }) => type === 'message')).toHaveLength(1);
  });

  it('that are refused once more stay (DEAD-LETTERS-2)', async () => {
    await toNobody('the words');
    expect(await ask('dead-retry', { sequence: 1 })).toMatchObject(refusedWith('UNKNOWN_AGENT'));
    expect([...daemon.bus.letters.values()]).toMatchObject([{ sequence: 1, id: 'in-1', publisher: 'alice' }]);
    hire();
    expect(await ask('dead-retry', { sequence: 1 })).toMatchObject({ ok: true, body: { id: 'in-1' } });
  });

  it('posting again a dead letter that is refused again makes no second one (DEAD-LETTERS-2)', async () => {
    await daemon.deliver('{oops');
    await daemon.deliver({ content: 'x', shout: 1 });
    for (const [sequence, code] of [
      [1, 'NOT_RETRYABLE'],
      [2, 'UNKNOWN_FIELD'],
    ]) {
      expect(await ask('dead-retry', { sequence })).toMatchObject({ ok: false, refusal: { code } });
    }
    expect([...daemon.bus.letters.keys()]).toEqual([1, 2]);
  });

  it('a discarded letter is gone without a post, and a second request says so', async () => {
    await toNobody('the words');
    hire();
    expect(await ask('dead-discard', { sequence: 1 })).toEqual({ ok: true, body: { accepted: true } });
    expect(daemon.bus.letters.size).toBe(0);
    expect(await daemon.entries().catch(() => [])).toEqual([]);
    expect(await ask('dead-discard', { sequence: 1 })).toMatchObject({
      ok: false,
      refusal: { code: 'NOT_FOUND', hint: expect.stringContaining('discarded') },
    });
  });

  it('dead letters stay while the disk is full', async () => {
    await toNobody('the words');
    hire();
    daemon.faults.push(new Error('ENOSPC: no space left'));
    expect(await ask('dead-retry', { sequence: 1 })).toMatchObject({ ok: false });
    expect(daemon.bus.letters.size).toBe(1);
    expect(await ask('dead-retry', { sequence: 1 })).toMatchObject({ ok: true, body: { duplicate: false } });
    expect(daemon.bus.letters.size).toBe(0);
  });
});
