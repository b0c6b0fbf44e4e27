import { expect, it } from 'vitest';
import { Conversation, type NewEntry, tokenRatioOf } from '../../../src/conversation/index.ts';
import { ALICE, DEV, logOf, PM, said, started } from './recall-log.ts';
import { rulesFor } from './world.ts';

/** The factor of an agent's estimates: the last count of its provider divided by the estimate of that request. */

const ratios = (...drafts: NewEntry[]) => {
  const { state } = new Conversation(rulesFor(['pm', 'dev']), logOf(...drafts));
  return [tokenRatioOf(state, 'pm'), tokenRatioOf(state, 'dev')];
};
const answered = (author: typeof PM, inputTokens: number, more: object = {}): NewEntry =>
  said(author, 'ok', { usage: { inputTokens, outputTokens: 5 }, estimatedTokens: 1_000, ...more });
const reduced = (more: object = {}): NewEntry =>
  ({
    ...{ type: 'summary', author: PM, agent: 'pm', turnId: 'turn-0', entries: [[0, 0]] },
    ...{ fromIndex: 0, toIndex: 0, content: 'S', ...more },
  }) as NewEntry;

it('the token ratio is one as long as no provider reported usage', () => {
  expect(ratios(said(ALICE, 'hi'), said(PM, 'hello'))).toEqual([1, 1]);
});

it('the token ratio follows the newest report, and stays where there is none', () => {
  expect(ratios(answered(PM, 1_500))).toEqual([1.5, 1]);
  expect(ratios(answered(PM, 1_500), answered(PM, 2_500))).toEqual([2.5, 1]);
  expect(ratios(answered(PM, 2_500), answered(PM, 900))).toEqual([0.9, 1]);
  expect(ratios(answered(PM, 2_500), said(PM, 'silent'))).toEqual([2.5, 1]);
  expect(ratios(answered(PM, 2_500), answered(PM, 0))).toEqual([2.5, 1]);
});

it('the token ratio stays between 0.8 and 4: one wrong report does not end a conversation', () => {
  expect(ratios(answered(PM, 10))).toEqual([0.8, 1]);
  expect(ratios(answered(PM, 1_000_000))).toEqual([4, 1]);
});

it('the token ratio is separate for each agent, since each has its own model', () => {
  expect(ratios(answered(PM, 1_500), answered(DEV, 3_000), answered(PM, 1_200))).toEqual([1.2, 3]);
});

it('after a refusal as too long the token ratio is at least the reported one, until the next report', () => {
  const turn = [said(ALICE, 'go', { to: ['pm'] }), answered(PM, 1_500), started('pm', 0)];
  expect(ratios(...turn, reduced())).toEqual([1.5, 1]); // The window was full: the estimate was right.
  expect(ratios(...turn, reduced({ tokenRatio: 2.2 }))).toEqual([2.2, 1]);
  expect(ratios(...turn, reduced({ tokenRatio: 2.2 }), reduced())).toEqual([2.2, 1]);
  const next = answered(PM, 1_800, { turnId: 'turn-0' });
  expect(ratios(...turn, reduced({ tokenRatio: 2.2 }), next)).toEqual([1.8, 1]);
});
