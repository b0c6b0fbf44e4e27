import { type Refusal, refusal } from '../../kernel/index.ts';
import type { Entry } from '../log/entry.ts';
import type { ConversationState } from '../state/state.ts';
import type { Command, Reply } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
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
 */

type CommandOf<T extends Command['type']> = Extract<Command, { type: T }>;

const DONE: Reply = { kind: 'done' };

/** Appends the copies that are not there yet. */
export function copy(builder: DecisionBuilder, { entries, from }: CommandOf<'copy'>): Reply {
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
export function fork(builder: DecisionBuilder, { from, at, by }: CommandOf<'fork'>): Reply {
  if (!builder.state.isPartialCopy) {
    const forked = builder.find((entry) => entry.type === 'forked' && entry.copiedFrom === undefined);
    const isSame = forked?.type === 'forked' && forked.from === from && forked.at === at;
    return isSame ? DONE : conflict();
  }
  if (builder.entryAt(at)?.copiedFrom === undefined || builder.entryAt(at + 1)?.copiedFrom !== undefined)
    return conflict(); // a part of another fork
  builder.add({ type: 'forked', author: by, from, at });
  const open = Object.values(builder.state.agents).flatMap(({ turn }) => turn ?? []);
  for (const { agent, turnId } of open.sort((a, b) => a.startedAt - b.startedAt)) {
    // Askers first: the answer of an asked agent then comes late and continues nothing.
    if (builder.state.agents[agent]?.turn?.turnId === turnId) endTurn(builder, agent, 'aborted');
  }
  startTurns(builder);
  return DONE;
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

function conflict(): Reply {
  const hint = 'choose another id for the fork';
  return {
    kind: 'refused',
    refusal: refusal('CONVERSATION_CONFLICT', 'the conversation has begun already', hint),
  };
}
