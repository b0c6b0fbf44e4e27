import {
  agentState,
  EMPTY_STATE,
  type Entry,
  evolve,
  nextTrigger,
  turnStart,
} from '../conversation/index.ts';
import { type Refusal, refusal } from '../kernel/index.ts';
import type { WireMessage } from './model-port.ts';
import { type AgentSetup, assembleOnce, type RequestSources } from './requests.ts';

/** Why an agent said what it said: the exact request, and an account of it (`parley explain`, endpoint `view`). */
export interface Explanation {
  readonly messages: readonly WireMessage[];
  readonly report: {
    /** Estimated tokens of the request. */
    readonly tokens: number;
    /** The model's context, in tokens. */
    readonly window: number;
    /** `not_needed`: nothing had to be left out. */
    readonly status: 'not_needed';
    /** Entries that the request holds. */
    readonly included: readonly number[];
    /** Entries that can stand in a view of this agent and were left out. */
    readonly left_out: readonly number[];
    /** Tools of the request; those of the agent that nobody offers now; those that the policy forbids it. */
    readonly tools: readonly string[];
    readonly tools_missing: readonly string[];
    readonly tools_forbidden: readonly string[];
    /** What this account cannot know. */
    readonly note?: string;
    /** SHA-256 of the request's bytes. */
    readonly requestHash: string;
    readonly model: string;
    /** Why it must not be sent, if so. */
    readonly fault: Refusal | null;
    /** For each message of `messages` where it comes from. */
    readonly parts: readonly { readonly kind: string; readonly entries: readonly number[] }[];
  };
}

export type Explained =
  | { readonly ok: true; readonly explanation: Explanation }
  | { readonly ok: false; readonly refusal: Refusal };

/**
 * The request behind entry `at`, if it is an assistant entry of this agent; else the request that the agent would
 * make if `at` were the log's last entry (default: the log as it is).
 */
export function explain(
  entries: readonly Entry[],
  conversation: string,
  agent: string,
  at: number | undefined,
  sources: RequestSources,
): Explained {
  const setup = sources.agents.get(agent);
  if (!setup) {
    const known = [...sources.agents.keys()].join(', ');
    return {
      ok: false,
      refusal: refusal('UNKNOWN_AGENT', `there is no agent ${agent}`, `known agents: ${known}`),
    };
  }
  if (at !== undefined && (!Number.isInteger(at) || at < 0 || at >= entries.length)) {
    const range = entries.length === 0 ? 'it is empty' : `it has entries 0 to ${entries.length - 1}`;
    return {
      ok: false,
      refusal: refusal('NO_SUCH_ENTRY', `conversation ${conversation} has no entry ${at}; ${range}`),
    };
  }
  const prepared = withTurn(entries.slice(0, lengthBehind(entries, agent, at)), agent);
  if (!prepared) {
    const text = `nobody has said anything in ${conversation} yet that ${agent} could answer`;
    return { ok: false, refusal: refusal('NOTHING_TO_EXPLAIN', text, 'post a message first') };
  }
  return { ok: true, explanation: account(prepared, conversation, setup, sources) };
}

/** How much of the log the request was built from. */
function lengthBehind(entries: readonly Entry[], agent: string, at: number | undefined): number {
  const entry = at === undefined ? undefined : entries[at];
  if (entry === undefined) return entries.length;
  const answers = entry.type === 'message' && entry.role === 'assistant' && entry.author.id === agent;
  return answers ? entry.index : entry.index + 1;
}

/** The entries, followed by the turn that would answer them if none is open. */
function withTurn(entries: readonly Entry[], agent: string): Entry[] | null {
  const state = agentState(entries.reduce(evolve, EMPTY_STATE), agent);
  if (state.turn) return [...entries];
  const waiting = nextTrigger(state.waiting);
  const trigger = waiting.length > 0 ? waiting : newestOfAPerson(entries);
  if (trigger.length === 0) return null;
  return [...entries, turnStart(entries.length, agent, trigger)];
}

function newestOfAPerson(entries: readonly Entry[]): number[] {
  const newest = entries.findLast(
    (entry) => entry.type === 'message' && entry.author.kind === 'person' && entry.includeInContext !== false,
  );
  return newest ? [newest.index] : [];
}

function account(
  entries: readonly Entry[],
  conversation: string,
  setup: AgentSetup,
  sources: RequestSources,
): Explanation {
  const state = entries.reduce(evolve, EMPTY_STATE);
  const { assembled, tools } = assembleOnce(sources, setup, entries, state, conversation);
  const { parts } = assembled;
  const included = [...new Set(parts.flatMap((part) => part.entries))].sort((a, b) => a - b);
  return {
    messages: assembled.request.messages,
    report: {
      tokens: assembled.tokens,
      window: setup.profile.contextTokens,
      status: 'not_needed',
      included,
      left_out: [],
      tools: tools.offered,
      tools_missing: tools.missing,
      tools_forbidden: tools.forbidden,
      requestHash: assembled.request.hash,
      model: setup.profile.name,
      fault: assembled.fault,
      parts: parts.map(({ kind, entries: from }) => ({ kind, entries: from })),
    },
  };
}
