import { ErrorCode } from 'nats';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createSubjects } from '../../src/bus/index.ts';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import { openQuestions } from '../support/batch.ts';
import { type Fleet, ownerOf, startFleet } from '../support/fleet.ts';
import { claimants, finished, followUntil } from '../support/log.ts';
import { ACT, createSteps, type Steps } from '../support/steps.ts';

/** A person answers an approval while its daemon is down and no other has taken over yet. */
describe('an approval whose daemon is down', () => {
  let fleet: Fleet;
  let steps: Steps;
  let person: ParleyClient;
  beforeEach(async () => {
    steps = createSteps();
    fleet = await startFleet({
      count: 2,
      agents: {
        pm: `---\nname: Pam\ndescription: works\nphases: [chat]\ntools: [${ACT}]\n---\nPAM`,
      },
      settings: { tools: { mcpServers: { steps: steps.server } } },
      handler({ json }) {
        const last = json.messages?.at(-1);
        if (last?.role !== 'user') return { text: 'done' };
        return { toolCalls: [{ name: ACT, arguments: JSON.stringify({ name: last.content }) }] };
      },
    });
    // Longer than a takeover may take (15 s).
    person = await connect({ url: fleet.nats.url, requests: { timeoutMs: 20_000, attempts: 1 } });
  });
  afterEach(async () => {
    await person?.close();
    await fleet?.close();
    await steps?.gone();
    steps?.remove();
  });

  const asked = async () => {
    await fleet.publish('demo', 'demo');
    const entries = await followUntil(fleet.client, 'demo', (known) => openQuestions(known).length > 0);
    return openQuestions(entries)[0]?.approvalId ?? '';
  };

  /** Until the server has noticed the end of that daemon: before that it may send it a request, which is then lost. */
  const dropped = (daemon: string) =>
    vi.waitFor(
      async () => {
        const asked = fleet.program.request(createSubjects().control(daemon, 'holds'), '', { timeout: 100 });
        await expect(asked).rejects.toMatchObject({ code: ErrorCode.NoResponders });
      },
      { timeout: 10_000 },
    );

  it('an answer to an approval waits until another daemon has taken over', async () => {
    const approvalId = await asked();
    const owner = await ownerOf(fleet, 'demo');
    await owner.kill9();
    await dropped(owner.ready.daemon ?? '');
    expect(await person.request('answer', { approvalId, answer: 'approve' })).toEqual({ accepted: true });
    const entries = await followUntil(fleet.client, 'demo', finished(1));
    expect(await steps.effects('demo')).toBe(1);
    expect(claimants(entries)).toHaveLength(2);
    expect(checkLaws(entries)).toEqual([]);
  });

  it('an approval is listed with its conversation while its daemon is down', async () => {
    const approvalId = await asked();
    const owner = await ownerOf(fleet, 'demo');
    await owner.kill9();
    await dropped(owner.ready.daemon ?? '');
    const { approvals } = await person.request('approvals', { conversation: 'demo' });
    expect(approvals).toMatchObject([{ approvalId, conversation: 'demo' }]);
  });

  it('an unknown approval is refused at once if no conversation waits for a takeover', async () => {
    await asked();
    await expect(person.request('answer', { approvalId: 'nobody-asked', answer: 'approve' })).rejects.toThrow(
      'there is no approval nobody-asked',
    );
  });
});
