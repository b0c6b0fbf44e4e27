import type { CallPlace, Mode, Risk } from '../log/entry.ts';
import { NOTHING_USED, type Used } from './usage.ts';
import { type Delegation, WaitingQueue } from './waiting.ts';

/**
 * The state of a conversation: a fold of its log (`evolve.ts`) and nothing else (L1). Values here are never changed
 * in place, so that a decision that could not be appended is undone by keeping the state before it.
 */

/** Everything there is to say about a phase. */
export interface PhaseSpec {
  readonly description: string;
  /** Phases an agent may enter from here. The same phase again is always allowed. */
  readonly next: readonly string[];
}

/** By phase name. Configuration adds to the built-in table or replaces rows of it. */
export type PhaseTable = Readonly<Record<string, PhaseSpec>>;

export const FIRST_PHASE = 'chat';

export const BUILT_IN_PHASES = {
  chat: { description: 'talk freely and find out what is wanted', next: ['execute', 'plan', 'brainstorm'] },
  brainstorm: { description: 'collect ideas without judging them', next: ['chat', 'plan', 'execute'] },
  plan: { description: 'decide what will be done, in which order, by whom', next: ['execute'] },
  execute: { description: 'do the work', next: ['verification', 'chat'] },
  verification: { description: 'check that the work holds', next: ['chores', 'execute', 'chat'] },
  chores: { description: 'tidy up: documentation, changelog, loose ends', next: ['reflection'] },
  reflection: { description: 'say what was learned', next: ['chat'] },
} as const satisfies PhaseTable;

export type BuiltInPhase = keyof typeof BUILT_IN_PHASES;

/** A call of the turn's last assistant entry that has no result yet. */
export interface OpenCall {
  readonly place: CallPlace;
  readonly name: string;
  readonly arguments: string;
  /** Where its request was asked for: the setting in which the model wrote it (`settingAt`). */
  readonly askedAt: number;
  /** The intent to run it is durable (L9). */
  readonly started: boolean;
  /** The turn's `workedMs` when it was started. */
  readonly startedMs: number;
  /** How often it was started: again after a crash. */
  readonly starts: number;
  /** As judged when it was requested, or stricter (L11). */
  readonly risk: Risk;
  readonly approval: Approval | null;
}

/** A person's word that a call waits for, or has. */
export interface Approval {
  readonly id: string;
  readonly status: 'pending' | 'given';
  /** It had started before: it may already have happened. */
  readonly mayHaveRun: boolean;
  /** When the person was asked: ISO 8601. */
  readonly requestedAt: string;
  /** Digest of the tool that is accepted with it. */
  readonly accepts?: string | undefined;
}

/** A turn that has not ended. A waiting one is still this turn (V11). */
export interface Turn {
  readonly turnId: string;
  readonly agent: string;
  readonly status: 'running' | 'waiting';
  readonly trigger: readonly number[];
  /** Index of its first `turn-started`. */
  readonly startedAt: number;
  /** Index of its newest `turn-started`: another one means that it goes on elsewhere. */
  readonly resumedAt: number;
  /** Milliseconds of work since it began or last went on after a wait, by the durations in the log. */
  readonly workedMs: number;
  /** Where it began or last went on after a wait. */
  readonly workingSince: number;
  /** Where its next model call was asked for: what that request holds is fixed by the log up to here. */
  readonly askedAt: number;
  readonly openCalls: readonly OpenCall[];
  /** Model calls that were answered. */
  readonly modelCalls: number;
  /** The log's length after its newest answer: a request built before that is answered already. */
  readonly answeredUpTo: number;
  readonly hops: number;
  /** As it was when the turn began: every request of the turn carries it (L6). */
  readonly sessionId: string | null;
  readonly delegatedBy: Delegation | null;
  /** Index of its newest entry with words. */
  readonly lastWords: number | null;
  /** Entries that answered its calls while it waited. */
  readonly arrived: readonly number[];
  /** The provider refused its next request as too long, and it was reduced since: once is all that is tried. */
  readonly wasTooLong: boolean;
  /** What that refusal says of the estimate: a guess, which ends with the turn or with what a provider counted. */
  readonly refusedRatio: number | null;
}

/** The workflow that mode run executes. */
export interface Run {
  readonly runId: string;
  readonly workflowId: string;
  readonly node: string;
  /** The node's agent. */
  readonly agent: string | null;
  /** Index of the `node-entered` that led here. */
  readonly enteredAt: number;
  /** What the node before left behind. */
  readonly before: { readonly outcome: string; readonly summary: string } | null;
  /** No message has reached the agent of the start node, and entering did not wake it. */
  readonly awaitsInput?: true;
  /** Index of the message that ended this wait. */
  readonly input?: number;
}

/** What the prefix and the run context are made of, from one entry on. */
export interface Setting {
  readonly from: number;
  readonly mode: Mode;
  readonly run: Run | null;
}

export interface AgentState {
  /** How many entries this agent has dealt with (V14). */
  readonly lastProcessedMessageIndex: number;
  readonly sessionId: string | null;
  readonly turn: Turn | null;
  /** Oldest first. */
  readonly waiting: WaitingQueue;
  /** Null: as the conversation is. */
  readonly stopped: boolean | null;
  /** The `limit-reached` that ended its last turn: `resume` takes it up from there. */
  readonly limitedBy: number | null;
  /** Milliseconds spent in model calls and tools. */
  readonly executionMs: number;
  /** What the provider counts for each token that is estimated, by its newest report. */
  readonly tokenRatio: number;
  /** By its model calls, and those that summed up its view. */
  readonly used: Used;
}

/** The daemon that works here, where several share the work. */
export interface Claim {
  readonly daemon: string;
  readonly epoch: number;
  /** How often what was under way at the claim had been taken up. */
  readonly attempt: number;
  /** Something came of it since. */
  readonly progressed: boolean;
}

export interface ConversationState {
  readonly length: number;
  readonly title: string | null;
  readonly phase: string;
  readonly mode: Mode;
  readonly run: Run | null;
  /** Every setting so far, oldest first. */
  readonly settings: readonly Setting[];
  readonly activeAgent: string | null;
  /** Everybody is stopped. */
  readonly stopped: boolean;
  readonly agents: Readonly<Record<string, AgentState>>;
  /** Tokens in and out, as providers reported them. */
  readonly tokens: number;
  /** What they cost, as far as prices are configured. */
  readonly usd: number;
  /** Index of the newest summary that has words, whichever agent's. */
  readonly newestSummary: number | null;
  readonly updatedAt: string | null;
  readonly claim: Claim | null;
  /** The newest post that is in the log, by its place in the ingress stream; `stream`: null where no claim named it. */
  readonly ingress: { readonly stream: string | null; readonly sequence: number };
}

/** What every `agents` inherits from: nothing, so that no slug finds what it was not given (`constructor`). */
const NOTHING: object = Object.freeze(Object.create(null));

/** A record by slug. Not `Object.create(null)`, which is a hash table that takes ten times as long to copy. */
export function noAgents(): Record<string, AgentState> {
  return Object.create(NOTHING);
}

export const EMPTY_STATE: ConversationState = {
  length: 0,
  title: null,
  phase: FIRST_PHASE,
  mode: 'agent',
  run: null,
  settings: [{ from: 0, mode: 'agent', run: null }],
  activeAgent: null,
  stopped: false,
  agents: Object.freeze(noAgents()),
  tokens: 0,
  usd: 0,
  newestSummary: null,
  updatedAt: null,
  claim: null,
  ingress: { stream: null, sequence: 0 },
};

export const EMPTY_AGENT: AgentState = {
  lastProcessedMessageIndex: 0,
  sessionId: null,
  turn: null,
  waiting: WaitingQueue.EMPTY,
  stopped: null,
  limitedBy: null,
  executionMs: 0,
  tokenRatio: 1,
  used: NOTHING_USED,
};

/** The mode and the run in which a request asked for at `index` is made: the same whenever it is made again. */
export function settingAt(state: ConversationState, index: number): Setting {
  return (
    state.settings.findLast((setting) => setting.from <= index) ?? {
      from: 0,
      mode: state.mode,
      run: state.run,
    }
  );
}

export function agentState(state: ConversationState, slug: string): AgentState {
  return state.agents[slug] ?? EMPTY_AGENT;
}

/** What corrects the estimate of the agent's next request. */
export function tokenRatioOf(state: ConversationState, slug: string): number {
  const { turn, tokenRatio } = agentState(state, slug);
  return turn?.refusedRatio ?? tokenRatio;
}

/** No turn of this agent may start. */
export function isStopped(state: ConversationState, slug: string): boolean {
  return agentState(state, slug).stopped ?? state.stopped;
}

/** The running turn of this agent is to end: a stop, a message posted while it ran that interrupts it, an asker that gave up. */
export function mustAbort(state: ConversationState, slug: string): boolean {
  const { turn, waiting } = agentState(state, slug);
  if (turn?.status !== 'running') return false;
  return (
    isStopped(state, slug) ||
    isWithdrawn(state, turn) ||
    waiting.some((item) => item.delivery === 'interrupt' && item.index > turn.startedAt)
  );
}

/** It was delegated, and nobody waits for its answer any more, or who does is about to give up. */
export function isWithdrawn(state: ConversationState, { delegatedBy }: Turn): boolean {
  if (delegatedBy === null) return false;
  const { agent, call } = delegatedBy;
  return ownerOf(state, call) !== agent || mustAbort(state, agent);
}

/** A turn runs or should start: after a crash somebody must look at this log without being asked. */
export function owesSomething(state: ConversationState): boolean {
  return Object.entries(state.agents).some(
    ([slug, agent]) =>
      agent.turn?.status === 'running' ||
      agent.turn?.openCalls.some((call) => call.approval?.status === 'pending') ||
      (agent.turn === null && agent.waiting.length > 0 && !isStopped(state, slug)),
  );
}

export function samePlace(a: CallPlace, b: CallPlace | undefined): boolean {
  return a.index === b?.index && a.position === b.position;
}

/** The agent whose open turn holds this call without a result. */
export function ownerOf(state: ConversationState, place: CallPlace): string | undefined {
  return Object.keys(state.agents).find((slug) =>
    state.agents[slug]?.turn?.openCalls.some((call) => samePlace(call.place, place)),
  );
}

/** Over whom an agent waits for another, itself first: `[]` when it does not. What is queued is waited for, too. */
export function waitsFor(state: ConversationState, slug: string, other: string): readonly string[] {
  const paths = [[slug]];
  const seen = new Set<string>();
  for (const path of paths) {
    const asker = path.at(-1) ?? slug;
    if (asker === other) return path;
    if (seen.has(asker)) continue;
    seen.add(asker);
    for (const next of asked(state, asker)) paths.push([...path, next]);
  }
  return [];
}

/** The agents that owe this agent's open turn an answer. */
function asked(state: ConversationState, asker: string): string[] {
  return Object.keys(state.agents).filter((slug) => {
    const { turn, waiting } = agentState(state, slug);
    return [turn?.delegatedBy, ...waiting.map((item) => item.delegatedBy)].some(
      (delegatedBy) => delegatedBy?.agent === asker && ownerOf(state, delegatedBy.call) === asker,
    );
  });
}
