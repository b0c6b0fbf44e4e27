import { expect, it } from 'vitest';
import { PeerMonitor } from '../../src/daemon/cluster/peer-monitor.ts';
import { Router } from '../../src/daemon/cluster/router.ts';
import { shared } from '../support/lifetime.ts';
import { recordingLog, startBroker } from '../unit/bus/support.ts';

const broker = shared(() => startBroker());
const peersOf = async (daemon: string) => (await broker.bus({ store: 'jetstream' })).share(daemon).peers;

it('a request to another daemon that exceeds a message, or its answer, is known as such, and no daemon counts as failed for it', async () => {
  const [a, b] = [await peersOf('a'), await peersOf('b')];
  const large = 'x'.repeat(1_100_000);
  await b.listen(async (verb) => (verb === 'api' ? { answer: { ok: true, body: large } } : {}));
  const monitor = new PeerMonitor({
    daemon: 'a',
    peers: a,
    failureTimeoutMs: 2_000,
    fingerprint: {},
    onConfigDifference: () => undefined,
    onGone: () => undefined,
    onBack: () => undefined,
  });
  const parts = { logs: {}, workers: {}, monitor, peers: a, log: recordingLog().log };
  const router = new Router('a', parts as never, 2_000);
  const small = { conversation: null, request: { endpoint: 'conversations', publisher: null, body: {} } };
  const reason = (what: string) => ({
    kind: 'too-large',
    reason: expect.stringMatching(`^the ${what} has 1100[0-9]{3} bytes; the broker carries 1048576$`),
  });
  expect(await router.ask('b', 'api', small)).toEqual(reason('answer'));
  const request = { ...small.request, body: large };
  expect(await router.ask('b', 'api', { ...small, request })).toEqual(reason('request'));
  expect(monitor.isFailed('b')).toBe(false);
  expect(await router.ask('b', 'probe', {})).toEqual({ kind: 'answered', body: {} });
});
