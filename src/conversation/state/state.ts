import type { CallPlace, Candidate, Mode, Risk, ServerAsks } from '../log/entry.ts';
import { type HiredAgents, NONE_HIRED } from './roster.ts';
import { NOTHING_USED, type Spent, type Used } from './usage.ts';
import { type Delegation, WaitingQueue } from './waiting.ts';

/**
 * The state of a conversation: a fold of its log (`evolve.ts`) and nothing else (L1). Values are immutable: a decision
 * that could not be appended is undone by returning to the state before it.
 */

/** One row of the phase table. */
export interface PhaseSpec {
  readonly description: string;
  /** Phases that an agent may enter from this one. Entering the same phase again is always allowed. */
  readonly next: readonly string[];
}

/** By phase name. Configuration adds rows to the built-in table or replaces them. */
export type PhaseTable = Readonly<Record<string, PhaseSpec>>;

const FIRST_PHASE = 'chat';

export const BUILT_IN_PHASES = {
  chat: { description: 'talk freely and find out what people need', next: ['execute', 'plan', 'brainstorm'] },
  brainstorm: { description: 'collect ideas without judging them', next: ['chat', 'plan', 'execute'] },
  plan: { description: 'decide what will be done, in which order, by whom', next: ['execute'] },
  execute: { description: 'do the work', next: ['verification', 'chat'] },
  verification: { description: 'check that the work holds', next: ['chores', 'execute', 'chat'] },
  chores: { description: 'tidy up: documentation, changelog, loose ends', next: ['reflection'] },
  reflection: { description: 'say what was learned', next: ['chat'] },
} as const satisfies PhaseTable;

/** A call of the turn's newest assistant entry that has no result yet. */
export interface OpenCall {
  readonly place: CallPlace;
  readonly name: string;
  /** In the form that is shown, judged, approved and run (HIDDEN-4). */
  readonly arguments: string;
  /** The name of the person who changed them. */
  readonly changedBy?: string;
  /** What the person who approved it said to the agent. */
  readonly remark?: { readonly by: string; readonly text: string };
  /** The turn's `upTo` when its model was called: determines the setting of the call (`settingAt`). */
  readonly upTo: number;
  /** A `tool-started` entry is durable (L9). */
  readonly started: boolean;
  /** The turn's `workedMs` when it was started. */
  readonly startedMs: number;
  /** Number of starts: more than one after a crash. */
  readonly starts: number;
  /** As judged when it was requested, or higher (L11). */
  readonly risk: Risk;
  readonly approval: Approval | null;
  /** What its server asks a person while it runs. */
  readonly question?: ServerQuestion | null;
  /** The author of the turn's tools answers it; since when (ISO 8601). Null: it runs here. */
  readonly atCaller: string | null;
}

/** A person's approval of a call, requested or given. */
interface Approval {
  readonly id: string;
  readonly status: 'pending' | 'given';
  /** The call had started before: it may already have had effects. */
  readonly mayHaveRun: boolean;
  /** ISO 8601. */
  readonly requestedAt: string;
  /** Digest of the tool definition that the approval accepts. */
  readonly accepts?: string | undefined;
  readonly covers?: string | undefined;
}

interface ServerQuestion {
  readonly id: string;
  /** ISO 8601. */
  readonly requestedAt: string;
  readonly asks: ServerAsks;
  /** The proposed answer, as JSON. */
  readonly arguments: string;
}

/** A turn that has not ended, waiting ones included (V11). */
export interface Turn {
  readonly turnId: string;
  readonly agent: string;
  readonly status: 'running' | 'waiting';
  readonly trigger: readonly number[];
  /** Index of its first `turn-started`. */
  readonly startedAt: number;
  /** Index of its newest `turn-started`: a later one means that another process resumed it. */
  readonly resumedAt: number;
  /** Milliseconds of work since the turn started or last resumed after a wait, by the durations in the log. */
  readonly workedMs: number;
  /** Index at which it started or last resumed after a wait. */
  readonly workingSince: number;
  /** Index of the entry that requests its next model call: the log up to here determines that request. */
  readonly upTo: number;
  readonly openCalls: readonly OpenCall[];
  readonly modelCalls: number;
  /** What an entry below this index requested is answered: it follows the newest answer, or is one that the next request continues. */
  readonly answeredUpTo: number;
  readonly hops: number;
  /** The session of its requests: that of the agent when the turn began, or of a message or answer of the turn since (L6). */
  readonly session: Session | null;
  /** The message of its trigger that brought tools (CLIENT-TOOLS-1). */
  readonly toolsFrom: number | null;
  readonly delegatedBy: Delegation | null;
  /** Index of its newest entry with text or files. */
  readonly lastWords: number | null;
  /** Entries that answered its calls during the wait. */
  readonly arrived: readonly number[];
  /** The provider refused the next request as too long and the view was reduced: this is tried once. */
  readonly wasTooLong: boolean;
  /** Lower bound of the token ratio from that refusal, until the turn ends or a provider reports usage. */
  readonly refusedRatio: number | null;
  /** Who is asked since an attempt failed (`attempt-failed`); null: the agent's own model. */
  readonly candidate: Candidate | null;
  /** An answer did not match the schema: the model was asked again (TYPED-2). */
  readonly wasInvalid: boolean;
  /** Its agent was dismissed meanwhile (HIRING-7), or another branch ended the run (RUN-BRANCH-4): the turn must end. */
  readonly isDismissed: boolean;
}

/** Where a run is. */
export interface Visit {
  readonly node: string;
  /** The node's agent; null: the run begins, or the branch waits for the others. */
  readonly agent: string | null;
  /** Index of the `node-entered` that led here. */
  readonly enteredAt: number;
  /** Outcome and summary of the nodes before: several, where branches met. */
  readonly before: readonly NodeResult[];
}

interface NodeResult {
  readonly node: string;
  readonly outcome: string;
  readonly summary: string;
}

export interface RunBranch extends Visit {
  /** The node that it began at. */
  readonly branch: string;
}

/** The workflow that mode run executes. Its visit is the first of its branches that runs (RUN-BRANCH-1). */
export interface Run extends Visit {
  readonly runId: string;
  readonly workflowId: string;
  /** While nodes run side by side: all branches, also those that wait for the others. */
  readonly branches?: readonly RunBranch[];
  /** The branch, in the run as an agent of one sees it (`runFor`). */
  readonly branch?: string;
  /** The values of its nodes so far. */
  readonly values?: Readonly<Record<string, unknown>>;
  /** The run still needs its first message: entering the start node started no turn. */
  readonly awaitsInput?: true;
  /** Index of the message that was the run's input. */
  readonly input?: number;
}

/** What determines the prefix and the run context, from entry `from` on. */
export interface Setting {
  readonly from: number;
  readonly mode: Mode;
  readonly run: Run | null;
}

/** What an agent's requests name as the session to continue. */
export interface Session {
  readonly id: string;
  /** A person named it in the message `from`, or the agent returned it with the answer `from`. */
  readonly by: 'person' | 'agent';
  /** Index of that entry. */
  readonly from: number;
}

export interface AgentState {
  /** The cursor: the number of entries that this agent has processed (V14). */
  readonly lastProcessedMessageIndex: number;
  readonly session: Session | null;
  readonly turn: Turn | null;
  /** Oldest first. */
  readonly waiting: WaitingQueue;
  /** Null: the conversation's `stopped` applies. */
  readonly stopped: boolean | null;
  /** The `limit-reached` that ended its last turn, if no post answers it (`replyTo`): `resume` starts a turn on it. */
  readonly limitedBy: number | null;
  /** The `turn-ended` of its last turn, if that failed and no post answers the failure (`replyTo`). */
  readonly failedAt: number | null;
  /** The id of its last entry that says why a model call failed, or which limit it reached. */
  readonly failure: string | null;
  /** Milliseconds spent in model calls and tools. */
  readonly executionMs: number;
  /** Real tokens per estimated token, from the newest usage report. */
  readonly tokenRatio: number;
  /** Usage of its model calls, summaries of its view included. */
  readonly used: Used;
  /** The part of it that its own process reported: it counts against the limits of this agent alone. */
  readonly reported: { readonly tokens: number; readonly usd: number };
}

/** The daemon that owns this conversation, where several share logs. */
export interface Claim {
  readonly daemon: string;
  readonly epoch: number;
  /** Number of claims in a row that resumed the same work without progress. */
  readonly attempt: number;
  /** Entries since the claim prove progress (`isProgress` of `entry-traits.ts`). */
  readonly progressed: boolean;
}

export interface ConversationState {
  readonly length: number;
  readonly title: string | null;
  readonly archived: boolean;
  /** Ids of the persons who wrote messages, the first `MOST_PEOPLE`. */
  readonly people: readonly string[];
  readonly phase: string;
  readonly mode: Mode;
  readonly run: Run | null;
  /** All settings, oldest first. */
  readonly settings: readonly Setting[];
  readonly activeAgent: string | null;
  readonly stopped: boolean;
  readonly agents: Readonly<Record<string, AgentState>>;
  /** Input and output tokens, as providers reported them. */
  readonly tokens: number;
  /** The cost of the calls whose cost is known. */
  readonly usd: number;
  /** Calls whose cost is unknown, for lack of a price or of usage. */
  readonly unpricedCalls: number;
  /** The same by day and agent, of the newest `SPENT_DAYS` days. */
  readonly spent: readonly Spent[];
  /** Index of the newest summary with text, of any agent. */
  readonly newestSummary: number | null;
  readonly updatedAt: string | null;
  readonly claim: Claim | null;
  /** Entries of another conversation were copied, and `forked` has not followed yet (FORK-2). */
  readonly isPartialCopy: boolean;
  /** The agents hired in this conversation, by slug, dismissed ones included (`roster.ts`). */
  readonly hired: HiredAgents;
  /** The newest post in the log, by ingress stream and sequence; `stream` is null before any claim names it. */
  readonly ingress: { readonly stream: string | null; readonly sequence: number };
}

/** Prototype of every `agents`: empty, so that a slug like `constructor` finds nothing. */
const EMPTY_PROTOTYPE: object = Object.freeze(Object.create(null));

/** A record by slug. `Object.create(null)` would make a hash table, which takes ten times as long to copy. */
export function noAgents(): Record<string, AgentState> {
  return Object.create(EMPTY_PROTOTYPE);
}

export const EMPTY_STATE: ConversationState = {
  length: 0,
  title: null,
  archived: false,
  people: [],
  phase: FIRST_PHASE,
  mode: 'agent',
  run: null,
  settings: [{ from: 0, mode: 'agent', run: null }],
  activeAgent: null,
  stopped: false,
  agents: Object.freeze(noAgents()),
  tokens: 0,
  usd: 0,
  unpricedCalls: 0,
  spent: [],
  newestSummary: null,
  updatedAt: null,
  claim: null,
  isPartialCopy: false,
  hired: NONE_HIRED,
  ingress: { stream: null, sequence: 0 },
};

export const NOTHING_REPORTED = { tokens: 0, usd: 0 };

const EMPTY_AGENT: AgentState = {
  lastProcessedMessageIndex: 0,
  session: null,
  turn: null,
  waiting: WaitingQueue.EMPTY,
  stopped: null,
  limitedBy: null,
  failedAt: null,
  failure: null,
  executionMs: 0,
  tokenRatio: 1,
  used: NOTHING_USED,
  reported: NOTHING_REPORTED,
};

/** What counts against a limit of the conversation for this agent: not what the processes of other agents report of themselves. */
export function usedFor(
  { tokens, usd, agents }: ConversationState,
  slug: string,
): { tokens: number; usd: number } {
  const left = { tokens, usd };
  for (const [other, { reported }] of Object.entries(agents)) {
    if (other === slug) continue;
    left.tokens -= reported.tokens;
    left.usd -= reported.usd;
  }
  return left;
}

/** Mode and run of an agent's request that was asked for at `index`: the same whenever it is built again. */
export function settingAt(state: ConversationState, index: number, agent: string): Setting {
  const setting = state.settings.findLast(({ from }) => from <= index) ?? {
    from: 0,
    mode: state.mode,
    run: state.run,
  };
  return setting.run?.branches ? { ...setting, run: runFor(setting.run, agent) } : setting;
}

/** The run at the node of this agent, if it works on a branch of its own (RUN-BRANCH-1). */
export function runFor(run: Run, agent: string): Run {
  const own = run.branches?.find((branch) => branch.agent === agent);
  return own ? { ...run, ...own } : run;
}

/** The nodes where a run is and has an agent. */
export function visitsOf(run: Run | null): readonly Visit[] {
  return run?.branches?.filter(({ agent }) => agent !== null) ?? (run ? [run] : []);
}

export function agentState(state: ConversationState, slug: string): AgentState {
  return state.agents[slug] ?? EMPTY_AGENT;
}

/** The factor that corrects the token estimate of the agent's next request. */
export function tokenRatioOf(state: ConversationState, slug: string): number {
  const { turn, tokenRatio } = agentState(state, slug);
  return turn?.refusedRatio ?? tokenRatio;
}

/** It has taken part in this conversation, or is the next to speak. */
export function isParticipant({ agents, activeAgent, run }: ConversationState, slug: string): boolean {
  return (
    Object.hasOwn(agents, slug) || activeAgent === slug || visitsOf(run).some(({ agent }) => agent === slug)
  );
}

/** No turn of this agent may start. */
export function isStopped(state: ConversationState, slug: string): boolean {
  return agentState(state, slug).stopped ?? state.stopped;
}

/** The agent's running turn must end: a stop, a dismissal, a later interrupting message, or a withdrawn delegation. */
export function mustAbort(state: ConversationState, slug: string): boolean {
  const { turn, waiting } = agentState(state, slug);
  if (turn?.status !== 'running') return false;
  return (
    isStopped(state, slug) ||
    turn.isDismissed ||
    isWithdrawn(state, turn) ||
    waiting.some((item) => item.delivery === 'interrupt' && item.index > turn.startedAt)
  );
}

/** It answers a delegation whose asker no longer waits, or is about to abort. */
export function isWithdrawn(state: ConversationState, { delegatedBy }: Turn): boolean {
  if (delegatedBy === null) return false;
  const { agent, call } = delegatedBy;
  return ownerOf(state, call) !== agent || mustAbort(state, agent);
}

/** A turn runs or should start, or a call waits until it expires: a daemon must open this log after a crash. */
export function hasOutstandingWork(state: ConversationState): boolean {
  if (state.isPartialCopy) return false;
  return Object.entries(state.agents).some(
    ([slug, agent]) =>
      agent.turn?.status === 'running' ||
      agent.turn?.openCalls.some((call) => call.approval?.status === 'pending' || call.atCaller) ||
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
