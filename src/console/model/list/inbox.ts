import type { Entry } from '../../../conversation/index.ts';
import { plainLine } from '../../../conversation/text/text.ts';
import { escapeHidden } from '../../../kernel/hidden.ts';
import type { Activity, ConversationRow } from '../answers.ts';
import { shortLine, withoutAnsi } from '../format.ts';
import type { NameOf } from '../thread/blocks.ts';
import type { Approval, Call, Question } from '../thread/calls.ts';
import { argumentsOf, callsOf, questionOf } from '../thread/calls.ts';
import { type Ending, endingOf } from '../thread/failure.ts';

/** What needs a person, of all conversations, from the activity of the list. */

type Row = Pick<ConversationRow, 'id' | 'title' | 'activity'>;
type Kind = 'approval' | 'form' | 'outcome' | 'question' | 'input' | 'failed' | 'limited';

export interface InboxItem {
  /** The same thing has the same key at each listing. */
  readonly key: string;
  readonly kind: Kind;
  readonly conversation: string;
  readonly title: string;
  readonly agent: string;
  readonly since: string;
  /** Null: the list names none. */
  readonly entry: number | null;
  readonly position: number;
  /** Of a run that waits for a message. */
  readonly workflow?: string | undefined;
}

const NONE: readonly InboxItem[] = [];

/** What waits for a decision, longest first; then what failed or reached a limit, newest first. */
export function inboxOf(rows: readonly Row[]): InboxItem[] {
  const items = rows.flatMap((row) => row.activity?.flatMap((one) => itemOf(row, one) ?? []) ?? NONE);
  const [asked, ended] = [items.filter(isDecision), items.filter((item) => !isDecision(item))];
  const older = (a: InboxItem, b: InboxItem) => (a.since < b.since ? -1 : 1);
  return [...asked.sort(older), ...ended.sort((a, b) => older(b, a))];
}

/** The items of one conversation together, in the order of their first ones. */
export function groupsOf(items: readonly InboxItem[]): readonly (readonly [...InboxItem[], InboxItem])[] {
  const groups = new Map<string, [...InboxItem[], InboxItem]>();
  for (const item of items) groups.set(item.conversation, [...(groups.get(item.conversation) ?? []), item]);
  return [...groups.values()];
}

/** An agent waits for it; the others ended. */
export function isDecision({ kind }: InboxItem): boolean {
  return kind !== 'failed' && kind !== 'limited';
}

function itemOf(row: Row, one: Activity): InboxItem | null {
  const { agent, since, of, entry = null, position = 0 } = one;
  const kind = kindOf(one);
  if (kind === null) return null;
  const key = [row.id, agent, kind, entry ?? since, position].join(' ');
  const named = { conversation: row.id, title: row.title ?? row.id };
  const awaited = kind === 'input' && { workflow: of };
  return { key, kind, ...named, agent, since: since ?? '', entry, position, ...awaited };
}

function kindOf({ status, for: waitsFor, asks }: Activity): Kind | null {
  if (status === 'failed' || status === 'limited') return status;
  if (asks !== undefined) return 'form';
  if (waitsFor === 'agent' || waitsFor === 'caller' || waitsFor === 'program') return null;
  return waitsFor ?? null;
}

/** What an item shows, from its entry. */
export type InboxContent =
  | ({ readonly kind: 'approval'; readonly approval: Approval; readonly call: Call } & Asked)
  | ({ readonly kind: 'question'; readonly question: Question } & Asked)
  | ({ readonly kind: 'ended' } & Ending & Pick<Asked, 'asker'>)
  | ({ readonly kind: 'elsewhere' } & Pick<InboxItem, 'workflow'> & Partial<Pick<Asked, 'said'>>);

interface Asked {
  /** The text of the agent beside the call; empty: none. */
  readonly said: string;
  /** Who asked for it, a person or an agent; null: it is too far above. */
  readonly asker: string | null;
}

/** The row of an item: what would run, or `ran`, what is asked, or what failed. */
export function summaryOf(content: InboxContent, ran?: object): string {
  switch (content.kind) {
    case 'approval': {
      const { asks } = content.approval;
      if (asks) return escapeHidden(shortLine([asks.message, ...Object.values(ran ?? {})].join(' ')));
      const { tool } = content.call;
      const given = Object.entries(ran ?? argumentsOf(content.call)).map(([name, one]) => {
        const text = typeof one === 'string' ? one : JSON.stringify(one);
        return tool === 'fs_edit' && name === 'replace' ? `→ ${text}` : text;
      });
      return escapeHidden(shortLine([tool, ...given].join(' ')));
    }
    case 'question':
      return plainLine(withoutAnsi(content.question.question), 120);
    case 'ended':
      return shortLine(escapeHidden(content.text));
    case 'elsewhere':
      return content.workflow === undefined ? '' : `Workflow ${content.workflow}`;
  }
}

/** `entry`: of the item; `before`: those before it, the last one first. */
export function contentOf(
  { kind, agent, position, workflow }: InboxItem,
  [entry, ...before]: readonly Entry[],
  nameOf: NameOf = (slug) => slug,
): InboxContent {
  if (kind === 'input' && entry?.type === 'message')
    return { kind: 'elsewhere', workflow, said: `${entry.author.name}:\n\n${entry.content}` };
  if (entry?.type === 'approval-requested') return approvalOf(entry, before);
  const asker = askerOf(entry?.turnId, before);
  const ended = entry && endingOf([entry, ...before], agent, nameOf);
  if (ended) return { kind: 'ended', ...ended, asker };
  const call = entry?.type === 'message' && callsOf(entry)[position];
  const question = call && questionOf(call, agent);
  if (!question) return { kind: 'elsewhere', workflow };
  return { kind: 'question', question, said: entry.content ?? '', asker };
}

/** Entries of old logs name neither tool nor arguments. */
function approvalOf(approval: Approval, before: readonly Entry[]): InboxContent {
  const { approvalId: id, tool, arguments: given, call: place, turnId } = approval;
  if (tool === undefined || given === undefined) return { kind: 'elsewhere' };
  const nothing = { answer: null, result: null, resultBy: null, isTold: false };
  const call: Call = { place, id, tool, arguments: given, status: 'asked', approval, ...nothing };
  const asked = before.find(({ index: at }) => at === place.index);
  const said = asked?.type === 'message' ? (asked.content ?? '') : '';
  return { kind: 'approval', approval, call, said, asker: askerOf(turnId, before) };
}

function askerOf(turnId: string | undefined, before: readonly Entry[]): string | null {
  const start = before.find((one) => one.type === 'turn-started' && one.turnId === turnId && !one.resumed);
  const trigger = start?.type === 'turn-started' ? start.trigger.at(-1) : undefined;
  return before.find(({ index }) => index === trigger)?.author.name ?? null;
}
