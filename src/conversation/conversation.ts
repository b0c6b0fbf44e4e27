import { answerApproval, expireApproval } from './decide/approvals.ts';
import { answerCalls, expireCall } from './decide/caller-results.ts';
import type { Command, CommandOf, Decision, Outcome, Reduction, Reply } from './decide/command.ts';
import {
  changeTeam,
  dismiss,
  feedback,
  hire,
  label,
  resume,
  setMode,
  setPhase,
  stop,
  titleWritten,
} from './decide/controls.ts';
import { type DecideContext, DecisionBuilder } from './decide/decision-builder.ts';
import { copy, fork, refusalOfPartialCopy } from './decide/fork.ts';
import { post, seed } from './decide/posting.ts';
import { claim, recover } from './decide/repair.ts';
import {
  attemptFailed,
  modelAborted,
  modelAnswered,
  modelFailed,
  reduceView,
  toolFinished,
} from './decide/reports.ts';
import { toolAsks } from './decide/server-questions.ts';
import { namedSession, summaryOf } from './decide/turn-entries.ts';
import { type Entry, SYSTEM_AUTHOR } from './log/entry.ts';
import { evolve } from './state/evolve.ts';
import { publisherOfPost } from './state/people.ts';
import { type Roster, rosterOf } from './state/roster.ts';
import { type ConversationState, EMPTY_STATE } from './state/state.ts';
import { AgentView, DEFAULT_VIEW_POLICY, type ViewMessage, type ViewPolicy } from './view/view.ts';

/** Dependencies of a conversation besides its log, the same for every decision. */
export interface ConversationRules
  extends Pick<
    DecideContext,
    'phases' | 'limits' | 'newId' | 'workflows' | 'tools' | 'ownRequests' | 'hiring'
  > {
  /** As configured. */
  readonly roster: Roster;
  viewPolicy(agent: string): ViewPolicy;
}

type RulesOf = (state: ConversationState) => ConversationRules;

/**
 * One log in memory with its folds: the state, the ids, and each agent's view. A decision is folded at once, so that
 * the next one sees it; `truncate` undoes what could not be appended.
 */
export class Conversation {
  readonly entries: Entry[];
  #current: ConversationState;
  readonly #id: string;
  readonly #rulesOf: RulesOf;
  /** By id; posts by publisher and id. */
  readonly #ids = new Map<string, number>();
  #views = new Map<string, AgentView>();
  /** The view policy of the definition that each agent's newest request was built from. */
  readonly #policies = new Map<string, ViewPolicy>();

  /**
   * `rules`: a function is called for each decision, so that the rules can be replaced. `id`: for approvals, which cannot be
   * answered without it.
   */
  constructor(rules: ConversationRules | RulesOf, entries: Entry[] = [], id = '') {
    this.#id = id;
    this.#rulesOf = typeof rules === 'function' ? rules : () => rules;
    this.entries = entries;
    this.#current = EMPTY_STATE;
    for (const entry of entries) this.#fold(entry);
  }

  get state(): ConversationState {
    return this.#current;
  }

  /** The agents of this conversation now. */
  get roster(): Roster {
    return rosterOf(this.#rulesOf(this.#current).roster, this.#current.hired);
  }

  /** The log has a post of this publisher with this id (L4). */
  hasPost(publisher: string, id: string): boolean {
    return this.#ids.has(keyOfPost(publisher, id));
  }

  /** Decides on a command, and folds its entries. The caller appends `entries`, or truncates to the length before. */
  apply(command: Command, now: number): Decision {
    const { decision, state } = this.#decide(command, now);
    for (const entry of decision.entries) this.#add(entry);
    this.#current = state;
    return decision;
  }

  /** The reply to a command if it were applied now. Nothing changes. */
  replyTo(command: Command, now: number): Reply {
    return this.#decide(command, now).decision.reply;
  }

  #decide(command: Command, now: number): Decided {
    return decide(this.#current, command, {
      ...this.#rulesOf(this.#current),
      now,
      conversation: this.#id,
      entries: this.entries,
      indexOfId: (id) => this.#ids.get(id),
      indexOfPost: (publisher, id) => this.#ids.get(keyOfPost(publisher, id)),
      knowledge: (agent) => {
        const { knowledge } = this.view(agent);
        knowledge.catchUp(this.entries);
        return knowledge;
      },
    });
  }

  /** The next entry of the log. */
  append(entry: Entry): void {
    this.#add(entry);
    this.#current = evolve(this.#current, entry);
  }

  /** An agent's view, up to date with the log. `policy`: of the definition of its turn; default: the last one given. */
  view(agent: string, policy?: ViewPolicy): AgentView {
    const wanted = policy ?? this.#policies.get(agent) ?? this.#rulesOf(this.#current).viewPolicy(agent);
    if (policy) this.#policies.set(agent, policy);
    let view = this.#views.get(agent);
    if (!view?.isUnder(wanted)) {
      view = new AgentView(this.entries, agent, wanted);
      this.#views.set(agent, view);
    }
    return view;
  }

  /** Drops everything from `length` on, after a failed append. */
  truncate(length: number): void {
    this.entries.length = length;
    this.#ids.clear();
    this.#views = new Map();
    this.#current = EMPTY_STATE;
    for (const entry of this.entries) this.#fold(entry);
  }

  #add(entry: Entry): void {
    this.entries.push(entry);
    this.#learnId(entry);
  }

  #fold(entry: Entry): void {
    this.#current = evolve(this.#current, entry);
    this.#learnId(entry);
  }

  #learnId(entry: Entry): void {
    const publisher = publisherOfPost(entry);
    const key = publisher === null ? entry.id : keyOfPost(publisher, entry.id);
    if (!this.#ids.has(key)) this.#ids.set(key, entry.index);
  }
}

/** Differs from every id, which contains no line break. */
function keyOfPost(publisher: string, id: string): string {
  return `${publisher}\n${id}`;
}

/**
 * The decision: which entries a command adds to the log, and which effects follow once they are durable.
 *
 * DECIDE-1 Pure: the same state, command, time and ids give the same entries and effects.
 * DECIDE-2 Its entries are one batch: all of them become visible, or none.
 * DECIDE-3 Every effect is keyed by an entry, so that the log alone determines the outstanding work after a crash.
 */
export function decide(state: ConversationState, command: Command, context: DecideContext): Decided {
  const builder = new DecisionBuilder(state, context);
  return { decision: builder.decision(replyTo(builder, command)), state: builder.state };
}

interface Decided {
  readonly decision: Decision;
  /** After its entries. */
  readonly state: ConversationState;
}

function replyTo(builder: DecisionBuilder, command: Command): Reply {
  const handler = HANDLERS[command.type] as (builder: DecisionBuilder, command: Command) => Outcome;
  const outcome = refusalOfPartialCopy(builder.state, command) ?? handler(builder, command);
  return 'code' in outcome ? { kind: 'refused', refusal: outcome } : outcome;
}

const HANDLERS: {
  readonly [T in Command['type']]: (builder: DecisionBuilder, command: CommandOf<T>) => Outcome;
} = {
  post,
  'model-answered': (builder, command) => report(modelAnswered(builder, command, command.answer)),
  'model-failed': (builder, command) => report(modelFailed(builder, command)),
  'attempt-failed': (builder, command) => report(attemptFailed(builder, command)),
  'model-aborted': (builder, command) => report(modelAborted(builder, command)),
  'reduce-view': (builder, command) => report(reduceView(builder, command)),
  'tool-finished': (builder, command) => report(toolFinished(builder, command)),
  'tool-asks': (builder, command) => report(toolAsks(builder, command)),
  'title-written': titleWritten,
  label,
  feedback,
  'set-phase': setPhase,
  'set-mode': setMode,
  seed,
  copy,
  fork,
  hire,
  dismiss,
  'change-team': changeTeam,
  stop,
  resume,
  recover: (builder, { audited }) => ({ kind: 'recovered', count: recover(builder, audited) }),
  claim: (builder, command) => ({ kind: 'recovered', ...claim(builder, command) }),
  answer: answerApproval,
  'answer-calls': answerCalls,
  'expire-call': (builder, { call }) => report(expireCall(builder, call)),
  'expire-approval': (builder, { approvalId }) => report(expireApproval(builder, approvalId)),
};

function report(applied: boolean): Reply {
  return { kind: applied ? 'done' : 'stale' };
}

/** The view of any agent from entries alone (L6). */
export function viewOf(entries: readonly Entry[], agent: string, policy: ViewPolicy = DEFAULT_VIEW_POLICY) {
  return new AgentView(entries, agent, policy).build();
}

export interface AgentMessagesInput {
  /** The log, or its beginning; `entries[i].index` is `i`. */
  readonly entries: readonly Entry[];
  /** The slug of the agent whose view it is. */
  readonly agent: string;
  /** Indexes of the entries to answer, if the agent's turn has not started in `entries`. */
  readonly trigger?: readonly number[];
  /** The system message before everything else. */
  readonly prefix?: string;
  readonly policy?: Partial<ViewPolicy>;
}

/** The messages of a request, for programs with their own daemon. Pure (L6). */
export function buildAgentMessages(input: AgentMessagesInput): ViewMessage[] {
  const { agent, trigger, prefix } = input;
  const policy = { ...DEFAULT_VIEW_POLICY, ...input.policy };
  const entries = trigger ? [...input.entries, ...turnStart(input.entries, agent, trigger)] : input.entries;
  const { history, tail } = new AgentView(entries, agent, policy).build();
  const messages = [...history, ...tail].map((part) => part.message);
  return prefix === undefined ? messages : [{ role: 'system', content: prefix }, ...messages];
}

/** The entries that a turn on `trigger` would begin with after `entries`. */
export function turnStart(entries: readonly Entry[], agent: string, trigger: readonly number[]): Entry[] {
  const common = { id: 'not-appended', createdAt: '', author: SYSTEM_AUTHOR, agent };
  const named = namedSession(trigger.map((index) => entries[index]));
  const index = entries.length;
  const set: Entry[] = named ? [{ index, ...common, type: 'session-set', ...named }] : [];
  const turn = { turnId: 'not-started', trigger: [...trigger] };
  return [...set, { index: index + set.length, ...common, type: 'turn-started', ...turn }];
}

export function summaryEntry(index: number, turnId: string, agent: string, reduction: Reduction): Entry {
  return { index, id: 'not-appended', createdAt: '', ...summaryOf({ turnId, agent }, reduction) };
}
