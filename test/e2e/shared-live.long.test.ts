import { expect, it, onTestFinished } from 'vitest';
import { readEvents } from '../support/event-source.ts';
import { ownerOf, startFleet } from '../support/fleet.ts';

const WORDS = Array.from({ length: 80 }, (_, n) => `w${n} `);

interface Live {
  readonly n: number;
  readonly from?: number;
  readonly delta: string;
}

it('a person who opens a conversation late gets the text of a running turn from its beginning, from any daemon', async () => {
  const fleet = await startFleet({ count: 0, handler: () => ({ text: WORDS.join(''), delayMs: 100 }) });
  onTestFinished(() => fleet.close());
  for (let n = 0; n < 2; n++) await fleet.add({}, '--http', '127.0.0.1:0');
  await fleet.publish('late', 'm1');
  let chunks = 0;
  for await (const arrival of fleet.client.follow('late')) {
    if (arrival.kind === 'live' && ++chunks === 5) break;
  }
  const owner = await ownerOf(fleet, 'late');
  const other = fleet.daemons.find((daemon) => daemon !== owner);
  for (const daemon of [other, owner, other]) {
    const reader = await readEvents(`${daemon?.ready.http}/api/conversations/late/events`);
    const live = () => reader.events.filter(({ event }) => event === 'live').map(({ data }) => data as Live);
    await expect.poll(() => live().length).toBeGreaterThan(3);
    const got = live().filter(({ n }, place, all) => place === 0 || n > (all[place - 1]?.n ?? 0));
    expect(got[0]).toMatchObject({ from: 0 });
    expect(WORDS.join('').startsWith(got.map(({ delta }) => delta).join(''))).toBe(true);
    reader.close();
  }
});
