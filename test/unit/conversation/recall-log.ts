import {
  type Author,
  DEFAULT_VIEW_POLICY,
  type Entry,
  type NewEntry,
  type RecallAnswer,
  type RecallRequest,
  recall,
  type ViewPolicy,
} from '../../../src/conversation/index.ts';
import { toolCall } from '../../support/log.ts';

/** Small logs, and functions that read them with recall. */

export const PM: Author = { kind: 'agent', id: 'pm', name: 'PM' };
export const DEV: Author = { kind: 'agent', id: 'dev', name: 'Dev' };
export const ALICE: Author = { kind: 'person', id: 'alice', name: 'Alice' };
export const BOB: Author = { kind: 'person', id: 'bob', name: 'Bob' };

type Message = Extract<NewEntry, { type: 'message' }>;

export function logOf(...drafts: NewEntry[]): Entry[] {
  return drafts.map(
    (draft, index) => ({ index, id: `e${index}`, createdAt: `t${index}`, ...draft }) as Entry,
  );
}

export function said(author: Author, content: string | null, more: Partial<Message> = {}): NewEntry {
  return { type: 'message', role: author.kind === 'agent' ? 'assistant' : 'user', author, content, ...more };
}

/** A message with calls, each `[name, arguments]`. */
export function called(author: Author, content: string | null, ...calls: [string, string][]): NewEntry {
  const tool_calls = calls.map(([name, given]) => toolCall(name, given, 'same'));
  return said(author, content, { tool_calls });
}

export function result(author: Author, index: number, content: string, position = 0): NewEntry {
  return { type: 'message', role: 'tool', author, content, call: { index, position } };
}

export function started(agent: string, ...trigger: number[]): NewEntry {
  return { type: 'turn-started', author: PM, turnId: `turn-${trigger.join()}`, agent, trigger };
}

export function answerTo(
  log: readonly Entry[],
  request: RecallRequest,
  policy: Partial<ViewPolicy> = {},
  agent = 'pm',
): RecallAnswer {
  const work = recall(log, agent, { ...DEFAULT_VIEW_POLICY, ...policy }, request);
  for (let step = work.next(); ; step = work.next()) if (step.done) return step.value;
}

export function recalled(...given: Parameters<typeof answerTo>): string {
  const answer = answerTo(...given);
  if (!answer.ok) throw new Error(JSON.stringify(answer.refusal));
  return answer.text;
}

/** All answers in order, each continued as its note says. */
export function pages(...[log, request, policy, agent]: Parameters<typeof answerTo>): string[] {
  const found: string[] = [];
  let next: RecallRequest | null = request;
  while (next) {
    const text = recalled(log, next, policy, agent);
    found.push(text);
    const [, goOn] = /^--- recall continues: call it again with (.*)$/mu.exec(text) ?? [];
    next = goOn === undefined ? null : JSON.parse(goOn);
  }
  return found;
}

/** The indexes in the headings of the answers. */
export function indexesIn(texts: readonly string[]): number[] {
  return texts.flatMap((text) =>
    [...text.matchAll(/^--- entry (\d+) ·/gmu)].map(([, index]) => Number(index)),
  );
}
