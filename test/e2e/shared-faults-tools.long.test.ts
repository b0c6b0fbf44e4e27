import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import { checkLaws } from '../../src/conversation/index.ts';
import { openQuestions } from '../support/batch.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import { claimants, entriesOf, finished, followUntil, ofType } from '../support/log.ts';
import { ACT, createSteps, LOOK, type Steps, until } from '../support/steps.ts';

/** Case 4 of docs/spec/cluster.md: a daemon is killed while a tool runs, and another takes over. */
describe('a tool whose daemon is killed', () => {
  let fleet: Fleet;
  let steps: Steps;
  beforeEach(async () => {
    steps = createSteps();
    fleet = await startFleet({
      count: 0,
      agents: {
        pm: `---\nname: Pam\ndescription: works\nphases: [chat]\ntools: [${LOOK}, ${ACT}]\n---\nPAM`,
      },
      settings: { tools: { mcpServers: { steps: steps.server } } },
      handler({ json }) {
        const last = json.messages?.at(-1);
        if (last?.role !== 'user') return { text: 'done' };
        const name = last.content === 'risky' ? ACT : LOOK;
        return { toolCalls: [{ name, arguments: JSON.stringify({ name: last.content }) }] };
      },
    });
  });
  afterEach(async () => {
    await fleet?.close();
    await steps?.gone();
    steps?.remove();
  });

  const questionIn = async (conversation: string, mayHaveRun: boolean) => {
    const asked = (known: readonly Entry[]) =>
      openQuestions(known).filter((one) => one.mayHaveRun === mayHaveRun);
    return asked(await followUntil(fleet.client, conversation, (known) => asked(known).length > 0))[0];
  };
  const answer = (approvalId: string | undefined, word: object) =>
    fleet.client.request('answer', { approvalId: approvalId ?? '', ...word } as never);
  const startsIn = (entries: readonly Entry[]) =>
    ofType(entries, 'tool-started').map(({ rerun }) => rerun === true);
  const resultsIn = (entries: readonly Entry[]) =>
    ofType(entries, 'message').flatMap(({ role, content }) => (role === 'tool' ? [content] : []));

  it("case 4: a safe tool is run again with a mark by the other daemon, and a risky one needs a person's decision", async () => {
    const first = await fleet.add();
    for (const name of ['safe', 'risky']) {
      steps.hold(name, 'after');
      await fleet.publish(name, name);
    }
    await answer((await questionIn('risky', false))?.approvalId, { answer: 'approve' });
    for (const name of ['safe', 'risky']) await until(async () => (await steps.effects(name)) === 1);
    await fleet.add();
    await first.kill9();
    for (const name of ['safe', 'risky']) steps.release(name);

    const safe = await followUntil(fleet.client, 'safe', finished(1));
    expect(startsIn(safe)).toEqual([false, true]);
    expect(await steps.effects('safe')).toBe(2);
    expect(resultsIn(safe)).toEqual(['safe is done']);

    const question = await questionIn('risky', true);
    expect(question).toMatchObject({ risk: 'risky' });
    expect(startsIn(await entriesOf(fleet.client, 'risky'))).toEqual([false]);
    await answer(question?.approvalId, { answer: 'result', result: 'it was sent' });
    const risky = await followUntil(fleet.client, 'risky', finished(1));
    expect(resultsIn(risky)).toEqual(['it was sent']);
    expect(await steps.effects('risky')).toBe(1);
    for (const entries of [safe, risky]) {
      expect(checkLaws(entries)).toEqual([]);
      expect(claimants(entries)).toHaveLength(2);
    }
  });

  it('case 4: a tool is not run again if its result was recorded', async () => {
    await fleet.add();
    const armed = await fleet.add({ PARLEY_CRASH_POINTS: 'after-tool-record:1' }, '--allow-crash-points');
    const conversations: string[] = [];
    let isDead = false;
    void armed.exited.then(() => {
      isDead = true;
    });
    while (!isDead && conversations.length < 50) {
      const id = `audited-${conversations.length}`;
      conversations.push(id);
      await fleet.publish(id, id);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    for (const id of conversations) {
      const entries = await followUntil(fleet.client, id, finished(1));
      expect(resultsIn(entries)).toEqual([`${id} is done`]);
      expect(await steps.effects(id)).toBeLessThanOrEqual(startsIn(entries).length);
      expect(checkLaws(entries)).toEqual([]);
    }
    const taken = await Promise.all(conversations.map((id) => entriesOf(fleet.client, id)));
    const backfilled = taken.filter(
      (entries) => claimants(entries).length === 2 && startsIn(entries).length === 1,
    );
    expect(backfilled.length).toBeGreaterThan(0);
  });
});
