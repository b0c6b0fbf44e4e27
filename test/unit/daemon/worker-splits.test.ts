import { describe, expect, it } from 'vitest';
import { ParleyError } from '../../../src/kernel/index.ts';
import { perTest } from '../../support/lifetime.ts';
import { createWorld, postCommand } from './world.ts';

describe('commands that are too large for one append', () => {
  const world = perTest(() => createWorld());

  const tooLarge = new ParleyError('APPEND_TOO_LARGE', 'more than one message');
  async function submitTogether(): Promise<PromiseSettledResult<unknown>[]> {
    const worker = await world.workers.use('demo');
    return Promise.allSettled(['m1', 'm2', 'm3'].map((id) => worker.submit(postCommand(id, id))));
  }

  it('are appended one by one, in order', async () => {
    world.faults.push(tooLarge);
    const outcomes = await submitTogether();
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect(world.appends).toHaveLength(3);
    const worker = await world.workers.use('demo');
    const texts = worker.entries().flatMap((entry) => (entry.type === 'message' ? [entry.content] : []));
    expect(texts).toEqual(['m1', 'm2', 'm3']);
  });

  it('fail with an earlier post that fails alone, since they would overtake it', async () => {
    world.faults.push(tooLarge, new Error('no space left'));
    const outcomes = await submitTogether();
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(world.appends).toEqual([]);
  });

  it('are refused when one alone is too large', async () => {
    world.faults.push(tooLarge);
    const worker = await world.workers.use('demo');
    await expect(worker.submit(postCommand('m1', 'one'))).rejects.toBe(tooLarge);
  });
});
