import { describe, expect, it } from 'vitest';
import { openTestStore } from '../support/jetstream-store.ts';
import { shared } from '../support/lifetime.ts';
import { ofType } from '../support/log.ts';
import { startNatsServer } from '../support/nats-server.ts';
import { createDaemon, postCommand } from '../unit/daemon/daemon.ts';

/** An append that has a long text twice, in a store where an append is a message. */

const KIB = 1_024;
const server = shared(() => startNatsServer());

async function daemonWithQuestion(name: string, given: object) {
  const store = await openTestStore(server.url, { prefix: name });
  const daemon = createDaemon({
    store,
    maxPayload: 1_024 * KIB,
    toolsOfAgents: ['ask', 'delegate', 'handoff'],
  });
  await daemon.workers.recover();
  await daemon.workers.submit('demo', postCommand('m1', 'go', ['pm']));
  daemon.calls[0]?.answer(null, [{ id: 'c', name, arguments: JSON.stringify(given) }]);
  return daemon;
}

describe('a text that an append has twice, and that exceeds a message then', () => {
  it('is refused as the answer of a person to a question: the post becomes a dead letter', async () => {
    const daemon = await daemonWithQuestion('ask', { question: 'What does it say?' });
    const worker = await daemon.workers.use('demo');
    await expect.poll(() => worker.state.agents.pm?.turn?.status).toBe('waiting');
    await daemon.deliver({ content: 'x'.repeat(600 * KIB), id: 'long' });
    expect(daemon.bus.dead).toMatchObject([{ refused: { code: 'TOO_LARGE' } }]);
    expect(daemon.posts.isBlocked).toBe(false);
    await daemon.deliver({ content: 'x'.repeat(400 * KIB), id: 'shorter' });
    expect(daemon.bus.dead).toHaveLength(1);
    await expect.poll(() => daemon.calls.length).toBe(2);
    await daemon.end();
  });

  it('becomes a file as the answer of a delegate', async () => {
    const daemon = await daemonWithQuestion('delegate', { to: 'dev', request: 'Print it.' });
    await expect.poll(() => daemon.calls.length).toBe(2);
    daemon.calls[1]?.answer('y'.repeat(600 * KIB));
    await expect.poll(() => daemon.calls.length).toBe(3);
    const worker = await daemon.workers.use('demo');
    expect(ofType(worker.entries(), 'delegation-answered')).toMatchObject([{ late: false }]);
    const result = ofType(worker.entries(), 'message').find(({ toolName }) => toolName === 'delegate');
    expect(result?.content).toMatch(/^y+\n\[Full output: @state/);
    await daemon.end();
  });

  it('becomes a file as the request to a delegate, whose call is refused then (LARGE-3)', async () => {
    const daemon = await daemonWithQuestion('delegate', { to: 'dev', request: 'z'.repeat(600 * KIB) });
    await expect.poll(() => daemon.calls.length).toBe(2);
    expect(daemon.calls[1]?.request.agent).toBe('pm');
    await daemon.end();
  });
});
