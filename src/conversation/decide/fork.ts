import { canonicalArguments, type NewId, type Refusal, refusal } from '../../kernel/index.ts';
import { approvalIdOf } from '../log/call-id.ts';
import { type Entry, SYSTEM_AUTHOR } from '../log/entry.ts';
import { evolve } from '../state/evolve.ts';
import { Knowledge } from '../state/knowledge.ts';
import { createRoster } from '../state/roster.ts';
import { agentState, BUILT_IN_PHASES, type ConversationState, EMPTY_STATE } from '../state/state.ts';
import { CallStep } from './call-step.ts';
import type { Command, CommandOf, Outcome, Reply } from './command.ts';
import { DecisionBuilder } from './decision-builder.ts';
import { endRun } from './runs.ts';
import { endTurn, startTurns } from './turns.ts';

/**
 * A fork: a copy of another conversation up to one entry, which then continues on its own.
 *
 * FORK-1 Copied entries keep their index, id and time, so that each request in them can be rebuilt with the same bytes (L6).
 *        They lose their ingress sequence: the posts belong to the other conversation.
 * FORK-2 A copy may take several appends. Until `forked` follows, it has no outstanding work and accepts no other command;
 *        the same fork again completes it.
 * FORK-3 `forked` closes each open turn as aborted: its calls run, if at all, in the other conversation. Waiting requests then
 *        start turns, as in any log.
 * FORK-4 An import is a copy of a file, which anybody may have written, so nothing in it has an effect: what waits there starts
 *        no turn, runs end, hired agents are dismissed, sessions and token ratios are forgotten, and no approval has an id
 *        from the file.
 */

const DONE: Reply = { kind: 'done' };

/** Appends the copies that are not there yet. */
export function copy(builder: DecisionBuilder, { entries, from }: CommandOf<'copy'>): Outcome {
  const { isPartialCopy, length } = builder.state;
  for (const entry of entries) {
    const known = builder.entryAt(entry.index);
    if (known ? !isCopyOf(known, entry) : length > 0 && !isPartialCopy) return conflict();
    if (!known && entry.index !== builder.nextIndex) return conflict(); // the copy was deleted meanwhile
    if (!known) builder.copy(copyOf(entry, from));
  }
  return DONE;
}

/** Completes the copy (FORK-3). */
export function fork(builder: DecisionBuilder, { from, at, by }: CommandOf<'fork'>): Outcome {
  if (!builder.state.isPartialCopy) {
    const forked = builder.find((entry) => entry.type === 'forked' && entry.copiedFrom === undefined);
    const isSame = forked?.type === 'forked' && forked.from === from && forked.at === at;
    return isSame ? DONE : conflict();
  }
  if (builder.entryAt(at)?.copiedFrom === undefined || builder.entryAt(at + 1)?.copiedFrom !== undefined)
    return conflict(); // a part of another fork
  builder.add({ type: 'forked', author: by, from, at });
  endOpenTurns(builder);
  startTurns(builder);
  return DONE;
}

function endOpenTurns(builder: DecisionBuilder): void {
  const open = Object.values(builder.state.agents).flatMap(({ turn }) => turn ?? []);
  for (const { agent, turnId } of open.sort((a, b) => a.startedAt - b.startedAt)) {
    // Askers first: the answer of an asked agent then comes late and continues nothing.
    if (builder.state.agents[agent]?.turn?.turnId === turnId) endTurn(builder, agent, 'aborted');
  }
}

export interface ImportInto {
  /** The id of the new conversation. */
  readonly conversation: string;
  /** The name of the file. */
  readonly file: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly newId: NewId;
}

/** The log of an import: the entries of the file as copies, and what ends them (FORK-4). Nothing is outstanding in it. */
export function importedLog(
  entries: readonly Entry[],
  { conversation, file, now, newId }: ImportInto,
): Entry[] {
  const copies = entries.map((entry) => copyOf(entry, conversation));
  const builder = new DecisionBuilder(copies.reduce(evolve, EMPTY_STATE), {
    conversation,
    now,
    newId,
    entries: copies,
    roster: createRoster([], ''),
    workflows: new Map(),
    phases: BUILT_IN_PHASES,
    ownRequests: false,
    limits: { hopsPerTrigger: 0, modelCallsPerTurn: 0 },
    tools: { judge: refuseAll, fingerprint: (text) => text },
    indexOfId: () => undefined,
    indexOfPost: () => undefined,
    knowledge(agent) {
      const knowledge = new Knowledge(agent, { includeCollapsed: false });
      knowledge.catchUp(copies);
      return knowledge;
    },
  });
  builder.add({ type: 'forked', author: SYSTEM_AUTHOR, from: conversation, at: entries.length - 1, file });
  const why = 'it is from an imported file';
  endRun(builder, SYSTEM_AUTHOR, { outcome: 'aborted', summary: why });
  for (const [agent, { isDismissed }] of Object.entries(builder.state.hired)) {
    const by = SYSTEM_AUTHOR.id;
    if (!isDismissed) builder.add({ type: 'agent-dismissed', author: SYSTEM_AUTHOR, agent, by, reason: why });
  }
  for (const agent of Object.keys(builder.state.agents)) takeWaiting(builder, agent);
  endOpenTurns(builder);
  return [...copies, ...builder.drafted];
}

/** In a turn that ends at once, so that the agent knows of it and no turn starts on it later, not even by `resume`. */
function takeWaiting(builder: DecisionBuilder, agent: string): void {
  const { turn, waiting, limitedBy } = agentState(builder.state, agent);
  const entries = [...waiting.map(({ index }) => index), ...(limitedBy === null ? [] : [limitedBy])];
  const author = builder.agentAuthor(agent);
  if (turn) {
    const { turnId } = turn;
    // No entry is delivered before the results of the open calls (V8).
    for (const call of turn.openCalls) new CallStep(builder, turn, call).leave('aborted');
    if (waiting.length > 0) builder.add({ type: 'message-delivered', author, turnId, agent, entries });
  } else if (entries.length > 0) {
    const trigger = entries.sort((a, b) => a - b);
    builder.add({ type: 'turn-started', author, turnId: builder.context.newId(), agent, trigger });
  }
}

const refuseAll = () =>
  ({ kind: 'refuse', code: 'FORBIDDEN', message: 'no call of an imported file runs' }) as const;

/**
 * The entries of a file with ids of approvals of the conversation that they are to become (APPROVAL-ID-1). Each request shows
 * the call that it is about, whatever the file says, and no answer covers later calls (GRANTS-1). `digest`: hexadecimal.
 */
export function withOwnApprovals(
  entries: readonly Entry[],
  conversation: string,
  digest: (text: string) => string,
): Entry[] {
  const ids = new Map<string, string>();
  const newId = (entry: Entry) => approvalIdOf(conversation, entry.index, digest(JSON.stringify(entry)));
  return entries.map((entry): Entry => {
    if (entry.type === 'approval-answered') {
      const { always: _, ...answered } = entry;
      return { ...answered, approvalId: ids.get(entry.approvalId) ?? newId(entry) };
    }
    if (entry.type !== 'approval-requested') return entry;
    const approvalId = newId(entry);
    ids.set(entry.approvalId, approvalId);
    const asking = entries[entry.call.index];
    const called = asking?.type === 'message' && asking.tool_calls?.[entry.call.position]?.function;
    if (!called || entry.asks) return { ...entry, approvalId };
    const text = canonicalArguments(called.arguments);
    return { ...entry, approvalId, tool: called.name, arguments: text, argumentsHash: digest(text) };
  });
}

/** FORK-2. Null: the command is possible now. */
export function refusalOfPartialCopy(state: ConversationState, { type }: Command): Refusal | null {
  const isPossible = type === 'copy' || type === 'fork' || type === 'claim' || type === 'recover';
  if (!state.isPartialCopy || isPossible) return null;
  return refusal(
    'CONVERSATION_CONFLICT',
    'the conversation is an incomplete copy of another one',
    'run the same `parley fork` again to complete it, or `parley rm` to delete it',
  );
}

function isCopyOf(known: Entry, entry: Entry): boolean {
  return known.id === entry.id && known.copiedFrom !== undefined;
}

function copyOf({ ingressSequence: _, ...entry }: Entry, from: string): Entry {
  return { ...entry, copiedFrom: entry.copiedFrom ?? from } as Entry;
}

function conflict(): Refusal {
  const hint = 'choose another id for the fork';
  return refusal('CONVERSATION_CONFLICT', 'the conversation has begun already', hint);
}
