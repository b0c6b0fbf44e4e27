import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect, type ParleyClient } from '../../src/client/index.ts';
import { openQuestions } from '../support/batch.ts';
import { followUntil } from '../support/daemon.ts';
import { type Crowd, claimants, faultsOf, ownerOf, startCrowd } from '../support/daemons.ts';
import { ACT, createSteps, type Steps } from '../support/steps.ts';
import { finished } from '../support/team.ts';

/** A person answers an approval while its daemon is down and no other has taken over yet. */
describe('an approval whose daemon is down', () => {
  let crowd: Crowd;
  let steps: Steps;
  let person: ParleyClient;
  beforeEach(async () => {
    steps = createSteps();
    crowd = await startCrowd({
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
    person = await connect({ url: crowd.nats.url, requests: { timeoutMs: 20_000, attempts: 1 } });
  });
  afterEach(async () => {
    await person?.close();
    await crowd?.close();
    await steps?.gone();
    steps?.remove();
  });

  const asked = async () => {
    await crowd.publish('demo', 'demo');
    const entries = await followUntil(crowd.client, 'demo', (known) => openQuestions(known).length > 0);
    return openQuestions(entries)[0]?.approvalId ?? '';
  };

  it('an answer to an approval waits until another daemon has taken over', async () => {
    const approvalId = await asked();
    await (await ownerOf(crowd, 'demo')).kill9();
    expect(await person.request('answer', { approvalId, answer: 'approve' })).toEqual({ accepted: true });
    const entries = await followUntil(crowd.client, 'demo', finished(1));
    expect(await steps.effects('demo')).toBe(1);
    expect(claimants(entries)).toHaveLength(2);
    expect(faultsOf(entries)).toEqual([]);
  });

  it('an unknown approval is refused at once if no conversation waits for a takeover', async () => {
    await asked();
    await expect(person.request('answer', { approvalId: 'nobody-asked', answer: 'approve' })).rejects.toThrow(
      'there is no approval nobody-asked',
    );
  });
});
