import { checkLaws } from '../../conversation/index.ts';
import { type Observed, type Violation, violation } from '../findings.ts';

/** What every log must satisfy by itself: the same check as in the tests. */
export function checkLogs({ logs }: Pick<Observed, 'logs'>): Violation[] {
  return [...logs].flatMap(([conversation, entries]) =>
    checkLaws(entries).map((text) => {
      const index = /^(?:entry|line) (\d+)/.exec(text)?.[1];
      return violation('log', conversation, index === undefined ? null : Number(index), text);
    }),
  );
}
