import { hasVisible, type Refusal } from '../../kernel/index.ts';
import type { CallPlace, Entry, EntryOf } from '../log/entry.ts';
import { turnInputOf } from '../progress/turn-watch.ts';
import { publisherOf, refusalOfApproval, refusalOfOwnApproval } from '../state/people.ts';
import type { Command } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';

/**
 * Who releases a call: a person, or an earlier approval that covers it.
 *
 * GRANTS-1  An approval with `always` also allows later calls of the same agent that its request `covers`, in this conversation and
 *           no copy of it, until a stop of the agent. Each gets its own request and, in the same append, an answer that names the grant.
 * GRANTS-2  The policy decides first: a grant answers only where a person would be asked. PERSON-4 holds for whoever gave it.
 */

type AnswerCommand = Extract<Command, { type: 'answer' }>;

/** The answer that also allows this call (GRANTS-1, GRANTS-2); null: a person is asked. */
export function grantFor(
  builder: DecisionBuilder,
  agent: string,
  call: CallPlace,
  covers: string,
): EntryOf<'approval-answered'> | null {
  const grant = grantOf(builder.all(), agent, covers);
  return grant && !forbiddenTo(builder, call, { by: grant.author, answer: 'approve' }) ? grant : null;
}

function grantOf(entries: readonly Entry[], agent: string, covers: string) {
  const asked = new Set(
    entries.flatMap((entry) =>
      entry.type === 'approval-requested' && entry.agent === agent && entry.covers === covers
        ? [entry.approvalId]
        : [],
    ),
  );
  for (const entry of asked.size > 0 ? entries.toReversed() : []) {
    if (entry.type === 'forked') return null;
    if (entry.type === 'agent-stopped' && (entry.agent ?? agent) === agent) return null;
    if (entry.type === 'approval-answered' && entry.always && asked.has(entry.approvalId)) return entry;
  }
  return null;
}

/** PERSON-4 */
export function forbiddenTo(
  builder: DecisionBuilder,
  call: CallPlace,
  { by, answer, isStranger = false }: Pick<AnswerCommand, 'by' | 'answer' | 'isStranger'>,
): Refusal | null {
  const isOwn = requestersOf(builder.all(), call).has(publisherOf(by.id));
  if (isStranger) return isOwn && answer === 'deny' ? null : refusalOfApproval(by.id);
  const isRelease = answer === 'approve' || answer === 'rerun';
  return isOwn && isRelease && !builder.context.ownRequests ? refusalOfOwnApproval(by.id) : null;
}

/**
 * The publishers whose words a call answers: messages that its turn had accepted when the model wrote the call, and what
 * they gave as the result of an earlier call. So too in the turns before it over delegations, handoffs, agents' answers
 * and nodes of a run.
 */
function requestersOf(entries: readonly Entry[], { index: end }: CallPlace): ReadonlySet<string> {
  const taken = new Map<string, number[]>();
  const take = (turnId: string, ...indexes: readonly number[]) =>
    taken.set(turnId, [...(taken.get(turnId) ?? []), ...indexes]);
  for (const entry of entries.slice(0, end)) {
    const found = turnInputOf(entry);
    if (found) take(found.turnId, ...found.messages);
    const turnId = hasWords(entry) && entry.call ? entries[entry.call.index]?.turnId : undefined;
    if (turnId !== undefined) take(turnId, entry.index);
  }
  const requesters = new Set<string>();
  const turns = new Set<string>();
  const follow = (turnId: string | undefined) => void (turnId !== undefined && turns.add(turnId));
  follow(entries[end]?.turnId);
  for (const turnId of turns) {
    for (const index of taken.get(turnId) ?? []) {
      const entry = entries[index];
      if (entry?.author.kind === 'person') requesters.add(publisherOf(entry.author.id));
      else follow(entry?.turnId ?? nodeBefore(entries, index));
    }
  }
  return requesters;
}

/** An answer to an approval whose words the model reads as the result of the call. */
function hasWords(entry: Entry): entry is EntryOf<'approval-answered'> {
  if (entry.type !== 'approval-answered' || entry.author.kind !== 'person') return false;
  if (entry.answer === 'deny' || entry.answer === 'failed') return hasVisible(entry.reason ?? '');
  return entry.answer === 'result' || entry.arguments !== undefined;
}

/** The turn that completed the node before: its result is the entry before `node-entered`, of which a fork has several. */
function nodeBefore(entries: readonly Entry[], index: number): string | undefined {
  if (entries[index]?.type !== 'node-entered') return undefined;
  return entries.slice(0, index).findLast(({ type }) => type !== 'node-entered')?.turnId;
}
