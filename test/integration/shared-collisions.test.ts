import { describe, expect, it } from 'vitest';
import { checkLaws, type Entry } from '../../src/conversation/index.ts';
import { hasLongTests } from '../support/runs.ts';
import { postCommand } from '../unit/daemon/daemon.ts';
import { aDaemon, aServer, aStore } from './jetstream-support.ts';

/** L3 with the work of two whole daemons. Both write to each conversation, without any assignment. */
describe('two daemons that are forced onto the same conversations', () => {
  const CONVERSATIONS = 20;
  /** A thousand collisions in `npm run test:full`, two hundred in long tests, otherwise eighty. */
  const ROUNDS = process.env.PARLEY_FULL === '1' ? 50 : hasLongTests ? 10 : 4;

  it('two daemons never interleave: each message is kept once, and a refused writer is informed', async () => {
    const { url } = await aServer();
    const daemons = await Promise.all(['one', 'two'].map((name) => aDaemon(url, name)));
    let lost = 0;
    const keep = async (place: number, conversation: string, id: string) => {
      for (;;) {
        try {
          await daemons[place]?.workers.submit(conversation, postCommand(id, id));
          return;
        } catch (error) {
          expect(error).toMatchObject({ code: 'CONVERSATION_MOVED' });
          lost += 1;
        }
      }
    };
    const collide = async (conversation: string) => {
      for (let round = 0; round < ROUNDS; round++)
        await Promise.all([0, 1].map((place) => keep(place, conversation, `${place}-${round}`)));
    };
    const names = Array.from({ length: CONVERSATIONS }, (_, n) => `c${n}`);
    await Promise.all(names.map(collide));
    const store = await aStore(url);
    for (const name of names) {
      const { entries } = await store.open(name);
      expect(checkLaws(entries)).toEqual([]);
      const wanted = [0, 1].map((place) => Array.from({ length: ROUNDS }, (_, round) => `${place}-${round}`));
      expect([0, 1].map((place) => posted(entries, place))).toEqual(wanted);
      expect(epochsOf(entries)).toEqual(epochsOf(entries).map((_, place) => place + 1));
    }
    expect(lost).toBeGreaterThan(0);
  });
});

/** What that daemon stored, in order. */
function posted(entries: readonly Entry[], place: number): string[] {
  const people = entries.filter((entry) => entry.type === 'message' && entry.role === 'user');
  return people.map(({ id }) => id).filter((id) => id.startsWith(`${place}-`));
}

function epochsOf(entries: readonly Entry[]): number[] {
  return entries.flatMap((entry) => (entry.type === 'claim' ? [entry.epoch] : []));
}
