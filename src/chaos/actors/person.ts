import type { ParleyClient, PendingApproval } from '../../client/index.ts';
import { sleep } from '../../kernel/index.ts';
import { hash } from '../rng.ts';

/** Somebody who answers for calls of which nobody knows whether they ran: now this way, now that. */
export interface PersonActor {
  readonly answered: number;
  readonly done: Promise<void>;
}

const EVERY_MS = 250;
const ANSWERS = ['rerun', 'failed', 'result'] as const;

export function createPersonActor(client: ParleyClient, signal: AbortSignal): PersonActor {
  const person = { answered: 0, done: Promise.resolve() };
  const answer = async ({ approvalId, mayHaveRun }: PendingApproval) => {
    const picked = ANSWERS[hash(approvalId) % ANSWERS.length] ?? 'failed';
    const word = mayHaveRun ? picked : 'approve';
    const result = word === 'result' ? { result: 'somebody looked: it is done' } : {};
    await client.request('answer', { approvalId, answer: word, publisher: 'judge', ...result });
    person.answered += 1;
  };
  person.done = (async () => {
    while (!signal.aborted) {
      const found = await client.request('approvals', {}).catch(() => ({ approvals: [] }));
      // Answered meanwhile, or the daemon is gone: the next look shows which.
      for (const approval of found.approvals) await answer(approval).catch(() => undefined);
      await sleep(EVERY_MS, signal);
    }
  })();
  return person;
}
