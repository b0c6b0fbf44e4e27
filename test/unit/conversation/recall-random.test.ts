import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import {
  DEFAULT_VIEW_POLICY,
  type Entry,
  Knowledge,
  SYSTEM_AUTHOR,
  viewOf,
} from '../../../src/conversation/index.ts';
import { runs } from '../../support/runs.ts';
import { expectedView } from '../../support/view-oracle.ts';
import { partsOf } from './core.ts';
import { HandMade } from './hand-made.ts';
import { indexesIn, pages } from './recall-log.ts';

// The number of runs bounds the work, so a slow machine may take long.
vi.setConfig({ testTimeout: 120_000 });

const AGENTS = ['dev', 'pm', 'qa'];
const dice = fc.array(fc.nat({ max: 4_799 }), { minLength: 20, maxLength: 260, size: 'max' });

function logs(numRuns: number, check: (log: Entry[], agent: string) => void): void {
  fc.assert(
    fc.property(dice, (numbers) => {
      const { log } = new HandMade(numbers);
      for (const agent of AGENTS) check(log, agent);
    }),
    { numRuns: runs(numRuns) },
  );
}

function readAll(log: readonly Entry[], agent: string): { indexes: number[]; text: string } {
  const texts = pages(log, { from: 0 }, {}, agent);
  return { indexes: indexesIn(texts), text: texts.join('\n') };
}

/** What the rules show the agent once its turn has ended. The oracle does not use `recall`. */
function ruled(log: readonly Entry[], agent: string): number[] {
  const index = log.length;
  const over: Entry = {
    index,
    id: `e${index}`,
    createdAt: '',
    type: 'turn-ended',
    author: SYSTEM_AUTHOR,
    turnId: 'any',
    agent,
    outcome: 'completed',
    lastProcessedMessageIndex: 0,
  };
  const { history, results } = expectedView([...log, over], agent);
  const behind = history.flatMap((at) => (results.get(at) ?? []).filter((result) => result !== undefined));
  const knowledge = new Knowledge(agent, DEFAULT_VIEW_POLICY);
  const answers = behind
    .map((at) => log[at])
    .flatMap((entry) => (entry?.type === 'message' ? (entry.answers ?? []) : []))
    .filter((at) => knowledge.mayContain(log[at]!));
  return [...new Set([...history, ...behind, ...answers])].sort((a, b) => a - b);
}

describe('recall in any log, by each of its agents', () => {
  it('L18 V1 V5: recall returns exactly what the views of that agent contain, or will contain without a trigger', () => {
    logs(60, (log, agent) => {
      if (log.length === 0) return;
      expect(readAll(log, agent).indexes).toEqual(ruled(log, agent));
    });
  });

  it('recall returns every message of a view in its words', () => {
    logs(40, (log, agent) => {
      if (log.length === 0) return;
      const { text, indexes } = readAll(log, agent);
      for (const { kind, entries, message } of partsOf(viewOf(log, agent))) {
        if (kind === 'away-block' || kind === 'marker' || entries[0] === undefined) continue;
        expect(indexes).toContain(entries[0]);
        expect(text).toContain(message.content ?? '');
        for (const { id, function: call } of message.tool_calls ?? [])
          expect(text).toContain(`call ${id}: ${call.name} ${call.arguments}`);
      }
    });
  });
});
