import type { CDPSession, Page } from 'playwright-core';

/** Processor time of the page's main thread so far, in milliseconds. */
export type MainThread = () => Promise<number>;

export async function mainThreadOf(page: Page): Promise<MainThread> {
  const session: CDPSession = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0) * 1_000;
  };
}
