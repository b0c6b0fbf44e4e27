import {
  AgentView,
  DEFAULT_VIEW_POLICY,
  type Entry,
  estimateTokens,
  type NewEntry,
  NO_LIMIT,
  planReduction,
  type ReductionInput,
  type ReductionPlan,
  type ViewLimits,
} from '../../../src/conversation/index.ts';
import { ALICE, PM, said, started } from './recall-log.ts';

/** Logs whose views are too large, and the plans of their reduction. */

export const WORDS = 'word '.repeat(80); // 100 tokens
export const tokensOf = ({ content }: { content: string | null }) => estimateTokens(content ?? '');

export function limitsOf(tokens: number, more: Partial<ViewLimits> = {}): ViewLimits {
  const limit = { max: tokens * 0.8, target: tokens * 0.5 };
  return { tokens: limit, windowTokens: tokens, messages: NO_LIMIT, chars: NO_LIMIT, ...more };
}

export function planOf(
  entries: readonly Entry[],
  limits: ViewLimits,
  more: Partial<ReductionInput> = {},
): ReductionPlan | null {
  const agentView = new AgentView(entries, 'pm', DEFAULT_VIEW_POLICY);
  const { history, tail } = agentView.build();
  const { knowledge } = agentView;
  const isUnshown = (index: number) => knowledge.isUnshown(index);
  const mayContain = (entry: Entry) => knowledge.mayContain(entry);
  return planReduction({
    entries,
    history,
    tail,
    isUnshown,
    mayContain,
    limits,
    tokensOf,
    write: () => 'S',
    ...more,
  });
}

export const ended: NewEntry = {
  type: 'turn-ended',
  author: PM,
  turnId: 'turn-0',
  agent: 'pm',
  outcome: 'completed',
  lastProcessedMessageIndex: 0,
};
/** A question and its answer take four entries: 0 to 3, 4 to 7, … */
export function exchange(at: number, question = WORDS): NewEntry[] {
  return [
    said(ALICE, question, { to: ['pm'] }),
    started('pm', at),
    said(PM, WORDS),
    { ...ended, turnId: `turn-${at}` },
  ];
}
export const exchanges = (count: number) => Array.from({ length: count }, (_, n) => exchange(4 * n)).flat();
export const asks = (at: number): NewEntry[] => [said(ALICE, 'now?', { to: ['pm'] }), started('pm', at)];

export function summed(log: readonly Entry[], plan: ReductionPlan, content = 'S'): Entry[] {
  const { covered, leftOut, shortened, previewLength } = plan;
  const all = [...covered, ...leftOut].flat();
  const draft = {
    ...{
      type: 'summary',
      author: PM,
      agent: 'pm',
      turnId: 'x',
      entries: covered,
      leftOut,
      shortened,
      previewLength,
      content,
    },
    ...{ fromIndex: Math.min(...all, log.length), toIndex: Math.max(...all, 0) },
  };
  return [...log, { index: log.length, id: `s${log.length}`, createdAt: 't', ...draft } as unknown as Entry];
}
