import { onTestFinished, vi } from 'vitest';

const wait = setTimeout;

/** Until the end of the test that runs, what waits a second in this process (`setTimeout`) waits 20 ms. */
export function shortenWaits(): void {
  vi.stubGlobal('setTimeout', (then: () => void, ms = 0) => wait(then, ms / 50));
  onTestFinished(() => void vi.unstubAllGlobals());
}
