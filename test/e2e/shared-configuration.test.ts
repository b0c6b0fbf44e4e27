import { afterEach, describe, expect } from 'vitest';
import { FAILURE_TIMEOUT_MS, type Fleet, startFleet } from '../support/fleet.ts';
import { itLong } from '../support/long.ts';
import { openProject, type Project, providerSettings, type RunningDaemon, TEAM } from '../support/project.ts';
import { until } from '../support/steps.ts';

/** Daemons that share the work need the same configuration. */
describe('a daemon with a different configuration', () => {
  let fleet: Fleet;
  let project: Project;
  afterEach(async () => {
    await project?.close();
    await fleet?.close();
  });
  const saidBy = (daemon: RunningDaemon | undefined) =>
    `${daemon?.stderr()}${JSON.stringify(daemon?.events())}`;

  itLong(
    'daemons report another one with a different configuration, and not one with the same in another folder',
    async () => {
      fleet = await startFleet({ count: 2 });
      project = await openProject({
        nats: fleet.nats.url,
        settings: providerSettings(fleet.provider.url, { sharing: { failureTimeoutMs: FAILURE_TIMEOUT_MS } }),
        agents: {
          ...TEAM,
          qa: '---\nname: Quinn\ndescription: checks\nphases: [chat]\n---\nANOTHER PERSONA',
        },
      });
      const other = await project.up('--store', 'jetstream');
      for (const daemon of fleet.daemons)
        await until(() => saidBy(daemon).includes('a different configuration'));
      await until(() => saidBy(other).includes('a different configuration'));
      for (const daemon of fleet.daemons) {
        const warnings = saidBy(daemon)
          .split('\n')
          .filter((line) => line.includes('a different configuration'));
        expect(warnings).toHaveLength(1);
        expect(warnings[0]).toContain(other.ready.daemon);
        expect(warnings[0]).toContain('agents');
        expect(warnings[0]).not.toContain('limits');
      }
    },
  );
});
