import type { CallPlace, Entry, EntryOf, MessageEntry } from '../../../conversation/index.ts';
import { placeOfCallId } from '../../../conversation/log/call-id.ts';
import { attemptText } from '../../../conversation/log/model-failure.ts';
import { teamChangeText } from '../../../conversation/log/words.ts';
import { type Call, type Calls, callsOf } from './calls.ts';

/** The blocks of a thread on the screen. */

export type Block =
  | {
      readonly kind: 'message';
      readonly index: number;
      readonly entry: MessageEntry;
      readonly calls: Calls;
      readonly feedback: readonly EntryOf<'feedback'>[];
      /** The question that it answers, if that was over already. */
      readonly lateFor: Call | null;
    }
  | {
      readonly kind: 'band';
      readonly index: number;
      readonly tone: BandTone;
      readonly title: string;
      readonly detail: string | null;
      /** The entry of another conversation that the title ends with; null: none. */
      readonly origin: { readonly conversation: string; readonly index: number } | null;
    }
  | {
      readonly kind: 'passage';
      readonly index: number;
      readonly tone: 'handoff' | 'delegation';
      readonly from: string;
      readonly to: string;
      readonly text: string;
      /** The answer's place, where one was asked for and came. */
      readonly answeredAt: number | null;
    }
  | {
      readonly kind: 'note';
      readonly index: number;
      readonly tone: NoteTone;
      readonly agent: string | null;
      readonly title: string;
      readonly content: string;
      /** A turn that needs a person to continue. */
      readonly ended: EndedTurn | null;
      /** The first and the last entry of a summary, after the title. */
      readonly summed?: readonly number[];
    };

/** How a person continues after a turn that ended early. */
export type EndedTurn = { readonly turnId: string; readonly outcome: 'failed' | 'limited' | 'aborted' };

type BandTone = 'phase' | 'mode' | 'run' | 'stop';
type NoteTone = 'note' | 'fault' | 'summary';
export type NameOf = (slug: string) => string;

export interface LogBefore {
  readonly nameOf: NameOf;
  readonly entries: readonly Entry[];
  callAt(place: CallPlace): Call | undefined;
  stateOf(agent: string): { readonly status: string };
}

/** The block of an entry; null: it has none, or changes other blocks. */
export function blockOf(entry: Entry, before: LogBefore): Block | null {
  const { index } = entry;
  const { nameOf } = before;
  switch (entry.type) {
    case 'message': {
      if (entry.role === 'tool') return null;
      const [calls, late] = [callsOf(entry), lateFor(entry, before)];
      return { kind: 'message', index, entry, calls, feedback: [], lateFor: late };
    }
    case 'handoff':
      return passage(entry, entry.summary);
    case 'delegation-requested':
      return passage(entry, entry.request);
    case 'turn-started':
      return entry.resumed && before.stateOf(entry.agent).status === 'running'
        ? note(entry, 'note', entry.agent, 'continues its turn after a restart of the daemon', '')
        : null;
    case 'turn-ended':
      return endOf(entry, before.entries, nameOf);
    case 'summary':
      return { ...note(entry, 'summary', entry.agent, REDUCED, entry.content), summed: rangeOf(entry) };
    case 'attempt-failed':
      return note(entry, 'note', null, attemptText(entry), '');
    case 'limit-reached':
      return note(entry, 'fault', entry.agent ?? null, `A limit was reached: ${limitOf(entry, nameOf)}`, '');
    case 'note': {
      const title = entry.toolName ? `A late result of ${entry.toolName}` : 'Note';
      return note(entry, 'note', null, title, entry.content);
    }
    case 'delegation-answered':
    case 'message-delivered':
    case 'tool-started':
    case 'approval-requested':
    case 'approval-answered':
    case 'title-set':
    case 'feedback':
    case 'session-set':
    case 'claim':
      return null;
    default:
      return bandOf(entry, nameOf);
  }
}

/** Those that neither the state of a thread nor its lanes depend on. */
export type AsideType =
  | 'message-delivered'
  | 'summary'
  | 'attempt-failed'
  | 'session-set'
  | 'limit-reached'
  | 'claim'
  | 'note';

/** Phase, mode, runs and stops. */
export type ControlEntry = Extract<Entry, { type: ControlType }>;
type ControlType =
  | 'phase-entered'
  | 'mode-entered'
  | 'run-started'
  | 'node-entered'
  | 'run-ended'
  | 'agent-stopped'
  | 'agent-resumed'
  | 'forked'
  | 'agent-hired'
  | 'agent-dismissed'
  | 'team-changed';

function passage(entry: EntryOf<'handoff'> | EntryOf<'delegation-requested'>, text: string): Block {
  const { index, from, to } = entry;
  const tone = entry.type === 'handoff' ? 'handoff' : 'delegation';
  return { kind: 'passage', index, tone, from, to, text, answeredAt: null };
}

function bandOf(entry: ControlEntry, nameOf: NameOf): Block | null {
  const { index } = entry;
  const band = (
    tone: BandTone,
    title: string,
    detail: string | null = null,
    origin: Extract<Block, { kind: 'band' }>['origin'] = null,
  ): Block => ({ kind: 'band', index, tone, title, detail, origin });
  switch (entry.type) {
    case 'phase-entered':
      return band('phase', `phase ${entry.to}`, reasonOf(entry.reason, entry.by, nameOf));
    case 'mode-entered':
      return band(
        'mode',
        `mode ${entry.to}`,
        entry.activeAgent && `${nameOf(entry.activeAgent)} has the floor`,
      );
    case 'run-started':
      return band('run', `run ${entry.workflowId}`);
    case 'node-entered':
      return band('run', entry.node, nodeDetail(entry, nameOf));
    case 'run-ended':
      return band('run', `run ended: ${entry.outcome}`, entry.summary ?? null);
    case 'forked':
      if (entry.file !== undefined) return band('run', `imported from ${entry.file}`, null);
      return band('run', 'forked from', null, { conversation: entry.from, index: entry.at });
    case 'agent-hired':
      return band('run', `${entry.agent} was hired`, `by ${personOf(entry.by, nameOf)}`);
    case 'agent-dismissed':
      return band('run', `${nameOf(entry.agent)} was dismissed`, reasonOf(entry.reason, entry.by, nameOf));
    case 'team-changed':
      return band('run', 'the team changed', entry.agents.map((of) => teamChangeText(of, nameOf)).join('; '));
    case 'agent-stopped':
    case 'agent-resumed': {
      const who = entry.agent ? nameOf(entry.agent) : 'The conversation';
      const done = entry.type === 'agent-stopped' ? 'stopped' : 'resumed';
      return band('stop', `${who} was ${done}`, `by ${personOf(entry.by, nameOf)}`);
    }
    default:
      entry satisfies never;
      return null; // a type of a newer version
  }
}

/** A message that names a question answers it while it waits. */
function lateFor({ role, replyTo = '' }: MessageEntry, before: LogBefore): Call | null {
  const place = role === 'user' ? placeOfCallId(replyTo) : null;
  const call = place && before.callAt(place);
  return call?.tool === 'ask' && call.result ? call : null;
}

function note(
  { index }: Entry,
  tone: NoteTone,
  agent: string | null,
  title: string,
  content: string,
  ended: EndedTurn | null = null,
) {
  return { kind: 'note' as const, index, tone, agent, title, content, ended };
}

function nodeDetail({ to, agent, from, branch }: EntryOf<'node-entered'>, nameOf: NameOf): string | null {
  if (to?.[0]) return `goes to ${nameOf(to[0])}`;
  if (!agent && branch !== undefined) return `${from ?? branch} is done and waits for the other branches`;
  return agent ? `goes to ${nameOf(agent)} with the next message` : null;
}

const rangeOf = ({ fromIndex, toIndex }: EntryOf<'summary'>) =>
  fromIndex === toIndex ? [fromIndex] : [fromIndex, toIndex];

const REDUCED = 'is shown less from here on. Summed up: entries';

/** The log names agents by their slugs. */
export function limitOf({ content }: EntryOf<'limit-reached'>, nameOf: NameOf): string {
  return content.replace(/^[\w-]+(?= made )|(?<=^the (?:budget|turn) of )[\w-]+/, (slug) => nameOf(slug));
}

/** A turn that was aborted is no failure: a person, or another agent, wanted it. */
function endOf(ended: EntryOf<'turn-ended'>, entries: readonly Entry[], nameOf: NameOf): Block | null {
  const { outcome, turnId, agent } = ended;
  if (outcome !== 'failed' && outcome !== 'aborted' && outcome !== 'limited') return null;
  const title = endingOf(entries, ended, nameOf);
  const isStopped = title.startsWith(`${STOPPED} by `);
  const again = outcome !== 'aborted' || isStopped ? { turnId, outcome } : null;
  return note(ended, outcome === 'aborted' ? 'note' : 'fault', agent, title, '', again);
}

function reasonOf(reason: string | undefined, by: string, nameOf: NameOf): string {
  const who = personOf(by, nameOf);
  return reason ? `${reason} (${who})` : `by ${who}`;
}

/** The name in an id, as messages show it: `Bob` of `console/Bob`; of an agent, its name. */
function personOf(id: string, nameOf: NameOf): string {
  const at = id.indexOf('/');
  return at < 0 ? nameOf(id) : id.slice(at + 1);
}

/** Why a turn ended early, from the entries before its end. */
export function endingOf(entries: readonly Entry[], ended: EntryOf<'turn-ended'>, nameOf: NameOf): string {
  if (ended.outcome === 'failed') return 'This turn failed';
  if (ended.outcome === 'limited') return 'This turn ended at a limit';
  const answers = new Set<number>();
  for (let at = ended.index - 1; at >= 0; at--) {
    const entry = entries[at];
    if (entry?.type === 'message' && entry.role === 'tool')
      for (const index of entry.answers ?? []) answers.add(index);
    const cause = entry && !answers.has(at) ? causeIn(entry, ended) : null;
    if (cause !== null) return cause;
    if (entry?.type === 'turn-started' && entry.turnId === ended.turnId && !entry.resumed)
      return causeBefore(entries[entry.trigger[0] ?? -1], ended.index === at + 1, nameOf);
  }
  return STOPPED;
}

const STOPPED = 'This turn was stopped';
export const FORK_ENDED = 'This turn ended with the fork';

/** Null: this entry did not end it. */
function causeIn(entry: Entry, { agent }: EntryOf<'turn-ended'>): string | null {
  const by = entry.author.name;
  switch (entry.type) {
    case 'agent-stopped':
      return entry.agent === null || entry.agent === agent ? `${STOPPED} by ${by}` : null;
    case 'message':
      return entry.delivery === 'interrupt' && entry.to?.includes(agent)
        ? `This turn was interrupted by a message of ${by}`
        : null;
    case 'agent-dismissed':
      return entry.agent === agent ? `This turn ended: ${by} dismissed its agent` : null;
    case 'team-changed':
      return entry.agents.some((one) => one.agent === agent && one.change === 'removed')
        ? 'This turn ended: its agent was removed from the configuration'
        : null;
    case 'forked':
      return entry.file === undefined
        ? `${FORK_ENDED}: what followed is in the other conversation`
        : 'This turn ended with the import: nothing of a file continues';
    default:
      return null;
  }
}

/** It was not needed any more: the asker waits no longer, or the run has left the node. */
function causeBefore(trigger: Entry | undefined, isAtOnce: boolean, nameOf: NameOf): string {
  if (trigger?.type === 'delegation-requested')
    return `This turn ended: ${nameOf(trigger.from)} does not wait for it any more`;
  return trigger?.type === 'node-entered' && isAtOnce
    ? 'This turn ended: its run has left this node'
    : STOPPED;
}
