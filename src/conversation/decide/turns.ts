import { type Refusal, refusal } from '../../kernel/index.ts';
import { type MessageEntry, SYSTEM_AUTHOR, type TurnOutcome } from '../log/entry.ts';
import { finishNotice } from '../log/finish-reason.ts';
import { filesOf } from '../log/parts.ts';
import {
  agentState,
  isStopped,
  isWithdrawn,
  mustAbort,
  samePlace,
  type Turn,
  visitsOf,
} from '../state/state.ts';
import { nextItems, type WaitingEntry, type WaitingQueue } from '../state/waiting.ts';
import { PERMITS, permissionIn } from '../tools/tool-rules.ts';
import { CallStep } from './call-step.ts';
import { beginCall, canJoin, closeCall, isAwaited, isRunning } from './calls.ts';
import type { CallReport } from './command.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { REPETITIONS_UNTIL_END, repetitions } from './repeated-calls.ts';
import { startableCalls, startTools } from './tools.ts';
import {
  addFailure,
  addLimit,
  addSession,
  addTitle,
  addTurnEnded,
  addTurnResumed,
  cutOf,
  stoppedMessage,
} from './turn-entries.ts';

/**
 * How a turn starts, continues, waits and ends.
 *
 * TURNS-1 One turn of an agent at a time (V11). The next trigger is the oldest waiting entry (V12).
 * TURNS-2 The batch that ends a turn contains its cursor (L8) and a result for every open call (V11).
 * TURNS-3 A report about a turn that is over, or about a request that has an answer, changes nothing.
 * TURNS-4 A turn that must end (a stop, an interruption) starts no tool and makes no further model call.
 * TURNS-5 A turn with nothing running and an awaited call is `waiting`; the last answer resumes it.
 * TURNS-6 A delegated turn always answers its asker, whatever its outcome: no agent waits forever.
 * TURNS-7 A turn that is no longer needed when it could start (a withdrawn delegation, a node that the run left) starts
 *         and ends at once.
 * TURNS-8 A turn whose agent was removed from the configuration ends, and answers its asker (TURNS-6). Posts that wait for
 *         such an agent get one turn with an error entry.
 */

/** Starts a turn of every agent that has no turn and has waiting entries. */
export function startTurns(builder: DecisionBuilder): void {
  for (const slug of Object.keys(builder.state.agents)) startTurn(builder, slug);
}

function startTurn(builder: DecisionBuilder, slug: string): void {
  const agent = agentState(builder.state, slug);
  if (agent.turn) return;
  if (isStopped(builder.state, slug)) {
    refuseCallsToStopped(builder, slug, agent.waiting);
    return;
  }
  const isKnown = builder.roster.agents.has(slug);
  if (agent.waiting.length === 0) return;
  const turnId = builder.context.newId();
  const next = isKnown ? nextItems(agent.waiting) : itemsOfRemoved(agent.waiting);
  const trigger = next.map((item) => item.index);
  addSession(builder, slug, trigger);
  const key = builder.add({
    type: 'turn-started',
    author: builder.agentAuthor(slug),
    turnId,
    agent: slug,
    trigger,
    upTo: builder.nextIndex,
    hops: next.reduce((most, { hops }) => Math.max(most, hops), 0),
  });
  const turn = openTurn(builder, slug);
  if (turn && (!isKnown || isWithdrawn(builder.state, turn) || isForLeftNode(builder, turn))) {
    // It starts and ends: the agent knows of the entries, and no model call is made.
    const isUnanswered = !isKnown && !turn.delegatedBy && !builder.state.hired[slug]?.isDismissed;
    if (isUnanswered) addFailure(builder, reportOn(turn), removedAgent(slug)); // TURNS-8
    endTurn(builder, slug, isUnanswered ? 'failed' : 'aborted');
    return;
  }
  builder.effect({ type: 'call-model', agent: slug, turnId, key });
}

/** One delegation, which needs an answer of its own (TURNS-6), or all other entries (TURNS-8). */
function itemsOfRemoved(waiting: WaitingQueue): readonly WaitingEntry[] {
  const delegated = waiting.find((item) => item.delegatedBy !== null);
  return delegated ? [delegated] : [...waiting];
}

function removedAgent(slug: string): Refusal {
  return refusal(
    'AGENT_REMOVED',
    `${slug}, or what it needs, was removed from the configuration: address another agent, or restore it, run \`parley reload\` and post again`,
  );
}

/** The report on a call that was not made: it has no request. */
function reportOn({ agent, turnId, upTo }: Turn): CallReport {
  return { agent, turnId, duration: 0, requestHash: '', upTo };
}

/** TURNS-6: a stopped agent starts no turn until it is resumed, so its askers get an error result now. */
function refuseCallsToStopped(builder: DecisionBuilder, slug: string, waiting: WaitingQueue): void {
  for (const { delegatedBy } of waiting) {
    const asker = delegatedBy && openTurn(builder, delegatedBy.agent);
    const call = asker?.openCalls.find((open) => samePlace(open.place, delegatedBy?.call));
    if (!asker || !call || mustAbort(builder.state, asker.agent)) continue;
    new CallStep(builder, asker, call).refuse('AGENT_STOPPED', stoppedMessage(slug));
    advanceTurn(builder, asker.agent);
  }
}

/** The turn is for a node that its run has left, or whose run is over. */
function isForLeftNode(builder: DecisionBuilder, { trigger }: Turn): boolean {
  const entry = builder.entryAt(trigger[0] ?? -1);
  return (
    entry?.type === 'node-entered' &&
    visitsOf(builder.state.run).every(({ enteredAt }) => enteredAt !== entry.index)
  );
}

/** Begins the calls of an assistant entry that was just appended. */
export function beginCalls(builder: DecisionBuilder, slug: string): void {
  if (mustAbort(builder.state, slug)) {
    endTurn(builder, slug, 'aborted'); // TURNS-4
    return;
  }
  for (const call of openTurn(builder, slug)?.openCalls ?? []) {
    const turn = openTurn(builder, slug);
    if (turn) beginCall(new CallStep(builder, turn, call));
  }
  advanceTurn(builder, slug);
  abortDismissed(builder);
  startTurns(builder); // of the agents that were asked: they do not wait for the asker's other tools
}

/** After a change of a turn's calls: the turn continues, waits, or ends. */
export function advanceTurn(builder: DecisionBuilder, slug: string): void {
  const turn = openTurn(builder, slug);
  if (!turn || (turn.status === 'waiting' && !canContinue(builder, turn))) return;
  if (turn.status === 'waiting' && !builder.roster.agents.has(slug)) {
    endTurn(builder, slug, 'aborted'); // TURNS-8
    return;
  }
  if (turn.status === 'waiting') addTurnResumed(builder, turn, turn.arrived);
  if (mustAbort(builder.state, slug)) {
    if (!turn.openCalls.some(isRunning)) endTurn(builder, slug, 'aborted'); // TURNS-4
    return;
  }
  startTools(builder, slug);
  const open = openTurn(builder, slug)?.openCalls ?? [];
  if (open.some(isRunning)) return;
  if (open.some(isAwaited))
    addTurnEnded(builder, turn, 'waiting'); // TURNS-5
  else if (runClosingCall(builder, slug)) {
    endTurn(builder, slug, 'completed');
    abortBranches(builder, slug);
  } else continueTurn(builder, slug);
}

/** No call is awaited any more, or a tool may start in the meantime. */
function canContinue(builder: DecisionBuilder, turn: Turn): boolean {
  return !turn.openCalls.some(isAwaited) || startableCalls(builder, turn).length > 0;
}

/** Carries out the first call that ends the turn, and refuses the others. */
function runClosingCall(builder: DecisionBuilder, slug: string): boolean {
  let closed = false;
  for (const call of openTurn(builder, slug)?.openCalls ?? []) {
    const turn = openTurn(builder, slug);
    if (!turn) return closed;
    const step = new CallStep(builder, turn, call);
    if (closed) step.refuse('TURN_OVER', 'another call of the same answer has ended the turn');
    else closed = closeCall(step);
  }
  return closed;
}

/** Every call has its result: delivers steered messages, and calls the model again (V8). */
function continueTurn(builder: DecisionBuilder, slug: string): void {
  const { modelCallsPerTurn } = builder.context.limits;
  const turn = openTurn(builder, slug);
  if (!turn) return;
  const calls = turn.modelCalls < modelCallsPerTurn ? 0 : turn.modelCalls - permissionsIn(builder, turn);
  if (calls >= modelCallsPerTurn) {
    const made = `${slug} made ${calls} model calls in one turn; the limit is ${modelCallsPerTurn}`;
    addLimit(builder, turn, 'modelCallsPerTurn', made);
    endTurn(builder, slug, 'limited');
    return;
  }
  const steered = agentState(builder.state, slug).waiting.filter(
    (item) => item.delivery === 'steer' && canJoin(builder, turn, item),
  );
  if (steered.length === 0 && repetitions(builder, turn) >= REPETITIONS_UNTIL_END) {
    const made = `${slug} made the same calls with the same results ${REPETITIONS_UNTIL_END} times in a row`;
    addLimit(builder, turn, 'repeatedCalls', made);
    endTurn(builder, slug, 'limited');
    return;
  }
  if (steered.length > 0) {
    const entries = steered.map((item) => item.index);
    addSession(builder, slug, entries);
    builder.add({
      type: 'message-delivered',
      author: SYSTEM_AUTHOR,
      turnId: turn.turnId,
      agent: slug,
      entries,
    });
  }
  builder.effect({ type: 'call-model', agent: slug, turnId: turn.turnId, key: builder.nextIndex - 1 });
}

/** How many answers of a coding agent asked for a permission and got it: no model was called for them. */
function permissionsIn(builder: DecisionBuilder, { turnId, startedAt }: Turn): number {
  const permitted = builder
    .all()
    .slice(startedAt)
    .flatMap((entry) => {
      if (entry.type !== 'message' || entry.turnId !== turnId || !PERMITS.has(entry.toolName ?? ''))
        return [];
      return permissionIn(entry.content ?? '').isGiven ? [entry.call?.index] : [];
    });
  return new Set(permitted).size;
}

/** Ends an agent's open turn: results for open calls, the cursor, the answer to its asker; then starts waiting turns (TURNS-2). */
export function endTurn(
  builder: DecisionBuilder,
  slug: string,
  outcome: Exclude<TurnOutcome, 'waiting'>,
): void {
  const turn = openTurn(builder, slug);
  if (!turn) return;
  const asked = delegatesOf(builder, turn);
  for (const call of turn.openCalls) new CallStep(builder, turn, call).leave(outcome);
  if (outcome === 'completed') addTitle(builder);
  addTurnEnded(builder, turn, outcome);
  for (const other of asked) abortTurn(builder, other, builder.nextIndex - 1);
  if (turn.delegatedBy) answerAsker(builder, turn, outcome); // TURNS-6
  startTurns(builder);
}

/** Answers the asker of a delegated turn: the turn's last text is the result of the call. A late answer changes nothing. */
function answerAsker(builder: DecisionBuilder, turn: Turn, outcome: TurnOutcome): void {
  if (!turn.delegatedBy) return;
  const { agent, call: place } = turn.delegatedBy;
  const asker = openTurn(builder, agent);
  const call = asker?.openCalls.find((open) => samePlace(open.place, place));
  const words = turn.lastWords === null ? undefined : builder.entryAt(turn.lastWords);
  const answers = words ? [words.index] : [];
  builder.add({
    type: 'delegation-answered',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    from: turn.agent,
    to: agent,
    answers,
    late: !call,
    call: place,
  });
  if (!asker || !call) return;
  const { content: text, parts } = (words as MessageEntry | undefined) ?? {};
  const files = filesOf({ parts });
  // An incomplete answer must not look like a complete one.
  const cut = cutOf(builder, turn);
  const isEnded = outcome === 'limited' || outcome === 'aborted';
  const why = isEnded ? `its turn was ${outcome}` : cut && `its answer was ${finishNotice(cut)}`;
  const mark = why ? `\n\n[${turn.agent} did not finish: ${why}]` : '';
  const isAnswered = text || files.length > 0;
  const content = isAnswered ? `${text}${mark}` : `[${turn.agent} gave no answer: its turn was ${outcome}]`;
  new CallStep(builder, asker, call).addResult({ content, files, answers });
  advanceTurn(builder, agent);
}

/** TURNS-8: no answer can resume these turns. */
export function endTurnsOfRemovedAgents(builder: DecisionBuilder): void {
  for (const [slug, { turn }] of Object.entries(builder.state.agents)) {
    const isRemoved = !builder.roster.agents.has(slug);
    if (isRemoved && turn?.status === 'waiting') endTurn(builder, slug, 'aborted');
  }
}

/** HIRING-7, for the dismissals of this decision. */
export function abortDismissed(builder: DecisionBuilder): void {
  for (const entry of builder.drafted)
    if (entry.type === 'agent-dismissed') abortTurn(builder, entry.agent, entry.index);
}

/** RUN-BRANCH-4 */
function abortBranches(builder: DecisionBuilder, slug: string): void {
  const ended = builder.drafted.findLast(({ type, author }) => type === 'run-ended' && author.id === slug);
  for (const [other, { turn }] of ended ? Object.entries(builder.state.agents) : [])
    if (turn?.isDismissed && builder.roster.agents.has(other))
      abortTurn(builder, other, builder.nextIndex - 1);
}

/** Aborts an agent's turn and its delegations: a running turn gets an effect, a waiting one ends at once. */
export function abortTurn(builder: DecisionBuilder, slug: string, key: number): void {
  const turn = openTurn(builder, slug);
  if (!turn) return;
  if (turn.status === 'waiting') {
    endTurn(builder, slug, 'aborted');
    return;
  }
  builder.effect({ type: 'abort-turn', agent: slug, turnId: turn.turnId, key });
  for (const other of delegatesOf(builder, turn)) abortTurn(builder, other, key);
}

function delegatesOf(builder: DecisionBuilder, turn: Turn): string[] {
  return Object.entries(builder.state.agents).flatMap(([slug, agent]) => {
    const place = agent.turn?.delegatedBy?.call;
    return place && turn.openCalls.some((call) => samePlace(call.place, place)) ? [slug] : [];
  });
}

function openTurn(builder: DecisionBuilder, slug: string): Turn | null {
  return agentState(builder.state, slug).turn;
}

export function runningTurn(builder: DecisionBuilder, agent: string, turnId: string): Turn | undefined {
  const turn = openTurn(builder, agent);
  return turn?.turnId === turnId && turn.status === 'running' ? turn : undefined;
}
