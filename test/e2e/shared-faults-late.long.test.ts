import { afterEach, describe, expect, it } from 'vitest';
import { layCable } from '../support/cable.ts';
import { followUntil, turnsEnded } from '../support/daemon.ts';
import { type Crowd, claimants, faultsOf, said, startCrowd, streamed } from '../support/daemons.ts';
import { createSteps, LOOK, until } from '../support/steps.ts';

/**
 * Case 8 of docs/spec/cluster.md: the connection of a daemon delays its writes, another daemon takes over, and then all of
 * them arrive. Without the fence, the control finds what these tests look for, so they can fail.
 */
describe('a daemon whose writes arrive late', () => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (let cleanup = cleanups.pop(); cleanup; cleanup = cleanups.pop()) await cleanup();
  });

  /** Resolves when another daemon has answered, and the late answer with its tool call is delivered. */
  async function stage(env: Readonly<Record<string, string>> = {}) {
    const steps = createSteps();
    cleanups.push(() => steps.remove());
    let speak: () => void = () => undefined;
    const spoken = new Promise<void>((resolve) => {
      speak = resolve;
    });
    const late = { text: 'too late', toolCalls: [{ name: LOOK, arguments: '{"name":"late"}' }] };
    const crowd: Crowd = await startCrowd({
      count: 0,
      agents: { pm: `---\nname: Pam\ndescription: works\nphases: [chat]\ntools: [${LOOK}]\n---\nPAM` },
      settings: { tools: { mcpServers: { steps: steps.server } } },
      handler: (_, count) => (count === 0 ? spoken.then(() => late) : { text: 'whole' }),
    });
    cleanups.push(() => crowd.close());
    const cable = await layCable(crowd.nats.url);
    cleanups.push(() => cable.close());
    const url = cable.url.replace('http:', 'nats:');
    const behind = await crowd.add(env, '--allow-crash-points', '--nats', url);
    await crowd.publish('demo', 'hello');
    await crowd.provider.waitForRequests(1);
    await crowd.add();
    cable.hold();
    await crowd.provider.waitForRequests(2); // of the other one, which has claimed it
    await until(async () => turnsEnded(1)(await streamed(crowd, 'demo')));
    speak();
    await until(() => /HPUB parley\.log\.demo .*too late/s.test(cable.held));
    cable.release();
    return { crowd, behind, steps };
  }

  it('case 8: all late writes are refused, and no tool starts for them', async () => {
    const { crowd, behind, steps } = await stage();
    await crowd.publish('demo', 'and then?');
    const entries = await followUntil(crowd.client, 'demo', turnsEnded(2));
    expect(said(entries)).toEqual(['hello', 'whole', 'and then?', 'whole']);
    expect(faultsOf(entries)).toEqual([]);
    expect(claimants(entries)).toHaveLength(2);
    expect(await behind.stop()).toBe(0);
    expect(await streamed(crowd, 'demo')).toEqual(entries);
    expect(await steps.entered('late')).toBe(0);
  });

  it('case 8 without the fence (the control): late writes follow the claim of another, answer twice, and run the tool', async () => {
    const { crowd, steps } = await stage({ PARLEY_NO_FENCE: '1' });
    await until(async () => said(await streamed(crowd, 'demo')).includes('too late'));
    const entries = await streamed(crowd, 'demo');
    expect(said(entries)).toEqual(['hello', 'whole', 'too late']);
    expect(faultsOf(entries)).not.toEqual([]);
    const places = entries.map(({ index }) => index);
    expect(new Set(places).size).toBeLessThan(places.length); // two entries claim one index
    await until(async () => (await steps.entered('late')) === 1);
  });
});
