import { afterEach, describe, expect, it } from 'vitest';
import { checkLaws } from '../../src/conversation/index.ts';
import { layCable } from '../support/cable.ts';
import { type Fleet, startFleet, streamed } from '../support/fleet.ts';
import { claimants, followUntil, said, turnsEnded } from '../support/log.ts';
import { createSteps, LOOK, until } from '../support/steps.ts';

/** Appends that expect no sequence. The length of a message is in front of it, so it stays. */
function withoutFence(chunk: Buffer): Buffer {
  const text = chunk.toString('latin1');
  const [fence, other] = ['Expected-Last-Subject-Sequence', 'Expected-No-Subject-Sequence--'];
  return Buffer.from(
    text.replaceAll(new RegExp(`(HPUB parley\\.log\\.[^]*?Nats-)${fence}`, 'g'), `$1${other}`),
    'latin1',
  );
}

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
  async function start(change?: (chunk: Buffer) => Buffer) {
    const steps = createSteps();
    cleanups.push(() => steps.remove());
    let speak: () => void = () => undefined;
    const spoken = new Promise<void>((resolve) => {
      speak = resolve;
    });
    const late = { text: 'too late', toolCalls: [{ name: LOOK, arguments: '{"name":"late"}' }] };
    const fleet: Fleet = await startFleet({
      count: 0,
      agents: { pm: `---\nname: Pam\ndescription: works\nphases: [chat]\ntools: [${LOOK}]\n---\nPAM` },
      settings: { tools: { mcpServers: { steps: steps.server } } },
      handler: (_, count) => (count === 0 ? spoken.then(() => late) : { text: 'whole' }),
    });
    cleanups.push(() => fleet.close());
    const cable = await layCable(fleet.nats.url);
    cleanups.push(() => cable.close());
    const url = cable.url.replace('http:', 'nats:');
    const behind = await fleet.add({}, '--nats', url);
    await fleet.publish('demo', 'hello');
    await fleet.provider.waitForRequests(1);
    await fleet.add();
    cable.hold();
    await fleet.provider.waitForRequests(2); // of the other one, which has claimed it
    await until(async () => turnsEnded(1)(await streamed(fleet, 'demo')));
    speak();
    await until(() => /HPUB parley\.log\.demo .*too late/s.test(cable.held));
    cable.release(change);
    return { fleet, behind, steps };
  }

  it('case 8: all late writes are refused, and no tool starts for them', async () => {
    const { fleet, behind, steps } = await start();
    await fleet.publish('demo', 'and then?');
    const entries = await followUntil(fleet.client, 'demo', turnsEnded(2));
    expect(said(entries)).toEqual(['hello', 'whole', 'and then?', 'whole']);
    expect(checkLaws(entries)).toEqual([]);
    expect(claimants(entries)).toHaveLength(2);
    expect(await behind.stop()).toBe(0);
    expect(await streamed(fleet, 'demo')).toEqual(entries);
    expect(await steps.entered('late')).toBe(0);
  });

  it('case 8 without the fence (the control): late writes follow the claim of another, answer twice, and run the tool', async () => {
    const { fleet, steps } = await start(withoutFence);
    await until(async () => said(await streamed(fleet, 'demo')).includes('too late'));
    const entries = await streamed(fleet, 'demo');
    expect(said(entries)).toEqual(['hello', 'whole', 'too late']);
    expect(checkLaws(entries)).not.toEqual([]);
    const places = entries.map(({ index }) => index);
    expect(new Set(places).size).toBeLessThan(places.length); // two entries claim one index
    await until(async () => (await steps.entered('late')) === 1);
  });
});
