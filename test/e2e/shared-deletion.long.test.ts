import { describe, expect, it } from 'vitest';
import { startFleet, streamed } from '../support/fleet.ts';
import { perTest } from '../support/lifetime.ts';
import { postedIds } from '../support/log.ts';

describe('a conversation that several daemons may delete', () => {
  const fleet = perTest(() => startFleet({ count: 2 }));

  const say = (conversation: string, id: string, content: string) =>
    fleet.client.post({ conversation, publisher: 'alice', id, content });
  const ROUNDS = process.env.PARLEY_FULL === '1' ? 400 : 80;

  it('a deleted conversation begins with the next post, whichever daemons delete it concurrently and repeatedly', async () => {
    const remove = async (conversation: string) => {
      const answer = await fleet.program.request('parley.api.delete', JSON.stringify({ conversation }), {
        timeout: 20_000,
      });
      return answer.json<{ deleted?: boolean }>();
    };
    const wrong: string[] = [];
    const round = async (conversation: string) => {
      await say(conversation, 'old', 'forget this');
      const answers = await Promise.all([0, 1, 2].map(() => remove(conversation)));
      expect(answers.map(({ deleted }) => deleted)).toEqual([true, true, true]);
      await say(conversation, 'new', 'a new beginning');
      const ids = postedIds(await streamed(fleet, conversation));
      if (ids.join() !== 'new') wrong.push(`${conversation}: ${ids.join()}`);
    };
    for (let done = 0; done < ROUNDS; done += 8)
      await Promise.all(Array.from({ length: 8 }, (_, lane) => round(`c${done + lane}`)));
    expect(wrong).toEqual([]);
    const prompts = fleet.provider.requests.map(({ body }) => JSON.stringify(body));
    const again = prompts.filter((text) => text.includes('forget this') && text.includes('a new beginning'));
    expect(again).toEqual([]);
  });

  it('a post during a repeated deletion is kept, or its publisher learns that it was deleted', async () => {
    const wrong: string[] = [];
    for (let n = 0; n < 20; n++) {
      const conversation = `d${n}`;
      await say(conversation, 'old', 'forget this');
      const body = JSON.stringify({ conversation });
      const deletions = [0, 1, 2].map(() =>
        fleet.program.request('parley.api.delete', body, { timeout: 20_000 }),
      );
      await Promise.race(deletions);
      const kept = await say(conversation, 'new', 'keep this').then(
        () => true,
        (error: { code?: string }) => error.code ?? false,
      );
      await Promise.all(deletions);
      const ids = postedIds(await streamed(fleet, conversation));
      if (kept !== true || ids.join() !== 'new') wrong.push(`${conversation}: ${kept} ${ids.join()}`);
    }
    expect(wrong).toEqual([]);
  });

  it('a deleted conversation does not return with posts acknowledged before it and not yet in the log', async () => {
    const conversation = 'behind-a-flood';
    const flood = Array.from({ length: 400 }, (_, n) => fleet.publish(`flood-${n % 7}`, `f${n}`));
    await Promise.all(flood);
    const body = JSON.stringify({ conversation });
    for (let n = 0; n < 10; n++) await fleet.publish(conversation, `old-${n}`);
    await fleet.program.request('parley.api.delete', body, { timeout: 20_000 });
    await say(conversation, 'new', 'a new beginning');
    expect(postedIds(await streamed(fleet, conversation))).toEqual(['new']);
  });
});
