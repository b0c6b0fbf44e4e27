import { expect, it, vi } from 'vitest';
import { loadConfig } from '../../../src/config/index.ts';
import { createDaemon } from '../../../src/daemon/index.ts';
import { createMemoryStore } from '../../../src/persistence/memory/index.ts';
import { createMemoryBus, SimulatedTime } from '../../../src/testing/simulation.ts';
import { newFolder } from '../../support/lifetime.ts';

it('a daemon that is started twice runs once, and one that was stopped starts and stops again', async () => {
  const agent = '---\nname: Pam\ndescription: plans\n---\nP';
  const configDirectory = await newFolder({ 'agents/pm.md': agent });
  const config = await loadConfig({ configDirectory, env: { PARLEY_HTTP: 'off' } });
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const time = new SimulatedTime(0);
  const store = createMemoryStore();
  const close = vi.spyOn(store, 'close').mockResolvedValue();
  const daemon = createDaemon({
    ...{ config, log, store },
    simulation: {
      bus: createMemoryBus({ now: time.now, onEntries: () => undefined }).bus,
      ...{ remote: { call: () => Promise.reject(new Error('none')) }, time },
      ...{ wrapTools: (toolbox) => toolbox, onReady: () => undefined },
    },
  });
  const [ready, again] = await Promise.all([daemon.start(), daemon.start()]);
  expect(await daemon.start()).toBe(ready);
  expect(again).toBe(ready);
  expect(close).toHaveBeenCalledTimes(0);
  for (const times of [1, 2]) {
    await Promise.all([daemon.stop(), daemon.stop()]);
    await daemon.stop();
    expect(close).toHaveBeenCalledTimes(times);
    await daemon.start();
  }
  await daemon.stop();
  const begun = daemon.start();
  await daemon.stop(); // releases what the start acquires later, too
  await begun;
  expect(close).toHaveBeenCalledTimes(4);
});
