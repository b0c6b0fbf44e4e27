import {
  agentState,
  type CallPlace,
  type Command,
  Conversation,
  type ConversationState,
  checkLaws,
  type Entry,
  evolve,
  isConversationTool,
  isStopped,
  type NewEntry,
  wireCallId,
} from '../../../src/conversation/index.ts';
import { mustAbort } from '../../../src/conversation/state/state.ts';
import { type Called, PERSON } from './team-core.ts';
import { ToolCore } from './tool-core.ts';

/**
 * Samples for the tables in docs/spec/turns.md: a log for each state, and an entry or a command for each row.
 * A cell is what the real fold, the law checker and the real decider make of the two.
 */

export const AGENT = 'pm';
export const ASK: Called = ['ask', { question: 'Which one?' }];

/** A log in one state, and the call that the rows about calls concern. */
export interface Sample {
  readonly core: ToolCore;
  readonly call: CallPlace;
  /** The approval of that call, or an unknown name. */
  readonly approvalId: string;
}

function sample(core: ToolCore, position = 0): Sample {
  const { entries } = core;
  const asking = entries.findLast((entry) => entry.type === 'message' && entry.tool_calls !== undefined);
  const call = { index: asking?.index ?? 0, position };
  const asked = entries.findLast(
    (entry) => entry.type === 'approval-requested' && wireCallId(entry.call) === wireCallId(call),
  );
  return { core, call, approvalId: asked?.type === 'approval-requested' ? asked.approvalId : 'none' };
}

function calling(...calls: readonly (string | Called)[]): ToolCore {
  const core = new ToolCore(['pm', 'dev', 'qa'], false).posted('go');
  core.act(AGENT, 'working', ...calls.map((call): Called => (typeof call === 'string' ? [call] : call)));
  return core;
}

function ended(): ToolCore {
  const core = new ToolCore(['pm', 'dev', 'qa'], false).posted('go');
  core.act(AGENT, 'done');
  return core;
}

function stopped(): ToolCore {
  const core = ended();
  core.do({ type: 'stop', agent: AGENT, by: PERSON });
  core.post('later');
  return core;
}

/** A person stops the agent while a call or tool of its turn runs. */
function aborting(core: ToolCore): ToolCore {
  core.do({ type: 'stop', agent: AGENT, by: PERSON });
  return core;
}

function posted(): ToolCore {
  const core = ended();
  core.post('again');
  return core;
}

/** A log that ends between the post and the turn that it starts, as no append of a daemon does. */
function queued(): ToolCore {
  const core = posted();
  core.conversation = new Conversation(core.rules, core.entries.slice(0, -1));
  return core;
}

function allowed(): ToolCore {
  const core = calling('safe', 'gated');
  core.answerApproval('gated', 'approve');
  return core;
}

/** A call of a tool that the post brought. */
function callersCall(): ToolCore {
  const core = new ToolCore(['pm', 'dev', 'qa'], false);
  core.post('go', { by: PERSON.id, tools: [{ name: 'theirs' }] });
  core.act(AGENT, 'working', ['theirs']);
  return core;
}

function crashed(): ToolCore {
  const core = calling('risky');
  core.crash();
  return core;
}

function finished(): ToolCore {
  const core = calling('safe');
  core.done('safe');
  return core;
}

/** The states of an agent's turn. `queued` and `held` are states without a turn. */
export const TURN_STATES: Readonly<Record<string, () => Sample>> = {
  idle: () => sample(ended()),
  queued: () => sample(queued()),
  held: () => sample(stopped()),
  model: () => sample(posted()),
  tools: () => sample(calling('safe')),
  'aborting (model)': () => sample(aborting(posted())),
  'aborting (tools)': () => sample(aborting(calling('safe'))),
  waiting: () => sample(calling(ASK)),
};

/** The states of a tool call. */
export const CALL_STATES: Readonly<Record<string, () => Sample>> = {
  requested: () => sample(calling('safe', 'risky'), 1),
  asked: () => sample(calling('gated')),
  allowed: () => sample(allowed(), 1),
  'started (safe)': () => sample(calling('safe')),
  'started (risky)': () => sample(calling('risky')),
  unknown: () => sample(crashed()),
  awaited: () => sample(calling(ASK)),
  'at the caller': () => sample(callersCall()),
  done: () => sample(finished()),
};

function turnStateOf(state: ConversationState): string {
  const { turn, waiting } = agentState(state, AGENT);
  if (turn) {
    const runs = turn.openCalls.length > 0 ? 'tools' : 'model';
    if (turn.status === 'waiting') return 'waiting';
    return mustAbort(state, AGENT) ? `aborting (${runs})` : runs;
  }
  if (isStopped(state, AGENT)) return 'held';
  return waiting.length > 0 ? 'queued' : 'idle';
}

function callStateOf(state: ConversationState, place: CallPlace): string {
  const calls = Object.values(state.agents).flatMap(({ turn }) => turn?.openCalls ?? []);
  const call = calls.find((open) => wireCallId(open.place) === wireCallId(place));
  if (!call) return 'done';
  if (call.atCaller) return 'at the caller';
  if (call.started) return `started (${call.risk})`;
  if (call.approval?.status === 'pending') return call.approval.mayHaveRun ? 'unknown' : 'asked';
  if (call.approval) return 'allowed';
  return isConversationTool(call.name) ? 'awaited' : 'requested';
}

export type MakeEntry = (sample: Sample, turnId: string, next: number) => NewEntry;
export type MakeCommand = (sample: Sample, turnId: string) => Command;

export type StateOf = (state: ConversationState, sample: Sample) => string;
export const turnState: StateOf = (state) => turnStateOf(state);
export const callState: StateOf = (state, { call }) => callStateOf(state, call);

/** The id of the open turn; without one, of the newest. */
function turnIdOf({ core }: Sample): string {
  const newest = core.entries.findLast((entry) => entry.type === 'turn-started' && entry.agent === AGENT);
  return (newest?.type === 'turn-started' ? newest.turnId : undefined) ?? 'none';
}

/** `state`, `–` for no change, and `✗` where the entry breaks a law that any log must keep. */
export function foldCell(make: MakeEntry, given: Sample, stateOf: StateOf): string {
  const { entries, conversation } = given.core;
  const next = entries.length;
  const draft = make(given, turnIdOf(given), next);
  const entry = { index: next, id: 'added', createdAt: '2026-01-01T00:00:00.000Z', ...draft } as Entry;
  const before = stateOf(conversation.state, given);
  const after = stateOf(evolve(conversation.state, entry), given);
  const known = new Set(checkLaws(entries));
  const isBroken = checkLaws([...entries, entry]).some((fault) => !known.has(fault));
  return `${after === before ? '–' : after}${isBroken ? ' ✗' : ''}`;
}

/** `entries → state; effects`, `stale`, `nothing` or `refused CODE`. */
export function decideCell(make: MakeCommand, given: Sample, stateOf: StateOf): string {
  const { conversation } = given.core;
  const command = make(given, turnIdOf(given));
  const { entries, effects, reply } = conversation.apply(command, 1_700_000_000_000);
  if (reply.kind === 'refused') return `refused ${reply.refusal.code}`;
  if (entries.length === 0) return reply.kind === 'stale' ? 'stale' : 'nothing';
  const after = stateOf(conversation.state, given);
  const asked = effects.map(({ type }) => type);
  return `${entries.map(nameOf).join(', ')} → ${after}${asked.length > 0 ? `; ${asked.join(', ')}` : ''}`;
}

function nameOf(entry: Entry): string {
  if (entry.type === 'message') return entry.role;
  return entry.type === 'turn-ended' ? `turn-ended ${entry.outcome}` : entry.type;
}
