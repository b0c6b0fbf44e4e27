import { afterEach, describe, expect, it } from 'vitest';
import { openSite, providerSettings, type RunningDaemon, type Site, TEAM } from '../support/daemon.ts';
import { type Crowd, SILENCE_MS, startCrowd } from '../support/daemons.ts';
import { until } from '../support/steps.ts';

/** Daemons that share the work need the same configuration. */
describe('a daemon with a different configuration', () => {
  let crowd: Crowd;
  let site: Site;
  afterEach(async () => {
    await site?.close();
    await crowd?.close();
  });
  const saidBy = (daemon: RunningDaemon | undefined) =>
    `${daemon?.stderr()}${JSON.stringify(daemon?.events())}`;

  it('daemons report another one with a different configuration, and not one with the same in another folder', async () => {
    crowd = await startCrowd({ count: 2 });
    site = await openSite({
      nats: crowd.nats.url,
      settings: providerSettings(crowd.provider.url, { sharing: { silenceMs: SILENCE_MS } }),
      agents: { ...TEAM, qa: '---\nname: Quinn\ndescription: checks\nphases: [chat]\n---\nANOTHER PERSONA' },
    });
    const other = await site.up('--store', 'jetstream');
    for (const daemon of crowd.daemons)
      await until(() => saidBy(daemon).includes('a different configuration'));
    await until(() => saidBy(other).includes('a different configuration'));
    for (const daemon of crowd.daemons) {
      const warnings = saidBy(daemon)
        .split('\n')
        .filter((line) => line.includes('a different configuration'));
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toContain(other.ready.daemon);
      expect(warnings[0]).toContain('agents');
      expect(warnings[0]).not.toContain('limits');
    }
  });
});
