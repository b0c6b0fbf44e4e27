import { type MessageEntry, SYSTEM_AUTHOR, type TurnOutcome } from '../log/entry.ts';
import { cutBy, finishNotice } from '../log/finish-reason.ts';
import {
  agentState,
  isStopped,
  isWithdrawn,
  mustAbort,
  type OpenCall,
  samePlace,
  type Turn,
} from '../state/state.ts';
import { type Waiting, WaitingQueue } from '../state/waiting.ts';
import { titleFrom } from '../text/text.ts';
import { AWAITED_TOOLS, CLOSING_TOOLS, isConversationTool } from '../tools/conversation-tools.ts';
import { beginCall, closeCall } from './calls.ts';
import type { DecisionBuilder } from './decision-builder.ts';
import { addLimit, addResult, refuse, stoppedMessage } from './records.ts';
import { startable, startTools } from './tools.ts';

/**
 * How a turn begins, goes on, waits and ends.
 *
 * TURNS-1 One turn of an agent at a time (V11); the next trigger is what has waited longest (V12).
 * TURNS-2 A turn ends with its cursor in the same batch (L8), and with a result for every open call (V11).
 * TURNS-3 A report about a turn that is over, or about a request that was answered already, changes nothing.
 * TURNS-4 A turn that is to end (a stop, an interruption) starts no tool and makes no further model call.
 * TURNS-5 A turn with nothing running and something to wait for is `waiting`; the last answer wakes it.
 * TURNS-6 Whoever was asked answers, whatever came of the turn: nobody waits for ever.
 * TURNS-7 A turn that nobody wants any more when it could begin (a delegation withdrawn, a node left) begins and ends.
 * TURNS-8 A turn whose agent was removed from the configuration does not go on: it ends, and its asker hears of it (TURNS-6).
 */

/** Starts a turn of every agent that is free and has something waiting. */
export function startTurns(builder: DecisionBuilder): void {
  for (const slug of Object.keys(builder.state.agents)) startTurn(builder, slug);
}

function startTurn(builder: DecisionBuilder, slug: string): void {
  const agent = agentState(builder.state, slug);
  if (agent.turn) return; // TURNS-1
  if (isStopped(builder.state, slug)) {
    answerForStopped(builder, slug, agent.waiting);
    return;
  }
  const isKnown = builder.context.roster.agents.has(slug);
  // TURNS-8
  const waiting = isKnown
    ? agent.waiting
    : WaitingQueue.of(agent.waiting.filter((item) => item.delegatedBy !== null));
  if (waiting.length === 0) return;
  const turnId = builder.context.newId();
  const next = nextOf(waiting);
  const key = builder.add({
    type: 'turn-started',
    author: builder.agentAuthor(slug),
    turnId,
    agent: slug,
    trigger: next.map((item) => item.index),
    upTo: builder.nextIndex,
    hops: next.reduce((most, { hops }) => Math.max(most, hops), 0),
  });
  const turn = openTurn(builder, slug);
  if (turn && (!isKnown || isWithdrawn(builder.state, turn) || isOfNodeLeft(builder, turn))) {
    // It begins and ends: the agent knows of it, and no model call is made.
    endTurn(builder, slug, 'aborted');
    return;
  }
  builder.effect({ type: 'call-model', agent: slug, turnId, key });
}

/** TURNS-6: an agent that was stopped before it began answers nothing until it is resumed, and its askers do not wait for that. */
function answerForStopped(builder: DecisionBuilder, slug: string, waiting: WaitingQueue): void {
  for (const { delegatedBy } of waiting) {
    const asker = delegatedBy && openTurn(builder, delegatedBy.agent);
    const call = asker?.openCalls.find((open) => samePlace(open.place, delegatedBy?.call));
    if (!asker || !call || mustAbort(builder.state, asker.agent)) continue;
    refuse(builder, asker, call, 'AGENT_STOPPED', stoppedMessage(slug));
    settle(builder, asker.agent);
  }
}

/** It is to do a node that its run has left since, or whose run is over. */
function isOfNodeLeft(builder: DecisionBuilder, { trigger }: Turn): boolean {
  const entry = builder.entryAt(trigger[0] ?? -1);
  return entry?.type === 'node-entered' && builder.state.run?.enteredAt !== entry.index;
}

/** V12: the oldest; if that was to be steered, all that were to be steered join it. */
function nextOf(waiting: WaitingQueue): readonly Waiting[] {
  const { oldest } = waiting;
  if (!oldest) return [];
  return oldest.delivery === 'queue' ? [oldest] : waiting.filter((item) => item.delivery !== 'queue');
}

export function nextTrigger(waiting: WaitingQueue): number[] {
  return nextOf(waiting).map((item) => item.index);
}

/** Begins the calls of an assistant entry that was just appended. */
export function beginCalls(builder: DecisionBuilder, slug: string): void {
  if (mustAbort(builder.state, slug)) {
    endTurn(builder, slug, 'aborted'); // TURNS-4
    return;
  }
  for (const call of openTurn(builder, slug)?.openCalls ?? []) {
    const turn = openTurn(builder, slug);
    if (turn) beginCall(builder, turn, call);
  }
  settle(builder, slug);
  startTurns(builder); // of those who were asked: they need not wait for the asker's other tools
}

/** After something about a turn's calls has changed: goes on, waits, or ends. */
export function settle(builder: DecisionBuilder, slug: string): void {
  const turn = openTurn(builder, slug);
  if (!turn || (turn.status === 'waiting' && !canGoOn(builder, turn))) return;
  if (turn.status === 'waiting' && !builder.context.roster.agents.has(slug)) {
    endTurn(builder, slug, 'aborted'); // TURNS-8
    return;
  }
  if (turn.status === 'waiting') wake(builder, turn);
  if (mustAbort(builder.state, slug)) {
    if (!turn.openCalls.some(isRunning)) endTurn(builder, slug, 'aborted'); // TURNS-4
    return;
  }
  startTools(builder, slug);
  const open = openTurn(builder, slug)?.openCalls ?? [];
  if (open.some(isRunning)) return;
  if (open.some(isAwaited))
    addTurnEnded(builder, turn, 'waiting'); // TURNS-5
  else if (open.some((call) => !CLOSING_TOOLS.has(call.name)))
    settle(builder, slug); // one was refused: the next
  else if (close(builder, slug)) endTurn(builder, slug, 'completed');
  else continueTurn(builder, slug);
}

/** Nothing is waited for any more, or a tool may run meanwhile. */
function canGoOn(builder: DecisionBuilder, turn: Turn): boolean {
  return !turn.openCalls.some(isAwaited) || startable(builder, turn).length > 0;
}

/** Started, and its result will come from a tool. */
function isRunning(call: OpenCall): boolean {
  return call.started && !isConversationTool(call.name);
}

/** Its result comes from another agent or a person, or it may not run before a person's word. */
function isAwaited(call: OpenCall): boolean {
  return AWAITED_TOOLS.has(call.name) || call.approval?.status === 'pending';
}

/** Everything that the turn waited for is here (V11). */
function wake(builder: DecisionBuilder, turn: Turn): void {
  builder.add({
    type: 'turn-started',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    agent: turn.agent,
    trigger: [...turn.arrived],
    resumed: true,
    hops: turn.hops,
    upTo: builder.nextIndex,
  });
}

/** Carries out the first call that ends the turn; what else would end it is refused. */
function close(builder: DecisionBuilder, slug: string): boolean {
  let closed = false;
  for (const call of openTurn(builder, slug)?.openCalls ?? []) {
    const turn = openTurn(builder, slug);
    if (!turn) return closed;
    if (closed)
      refuse(builder, turn, call, 'TURN_OVER', 'another call of the same answer has ended the turn');
    else closed = closeCall(builder, turn, call);
  }
  return closed;
}

/** Every call has its result: the model is asked again, shown what was steered to it meanwhile (V8). */
function continueTurn(builder: DecisionBuilder, slug: string): void {
  const { modelCallsPerTurn } = builder.context.limits;
  const turn = openTurn(builder, slug);
  if (!turn) return;
  if (turn.modelCalls >= modelCallsPerTurn) {
    const made = `${slug} made ${turn.modelCalls} model calls in one turn; the limit is ${modelCallsPerTurn}`;
    addLimit(builder, turn, 'modelCallsPerTurn', made);
    endTurn(builder, slug, 'limited');
    return;
  }
  const steered = agentState(builder.state, slug).waiting.filter((item) => item.delivery === 'steer');
  if (steered.length > 0) {
    const entries = steered.map((item) => item.index);
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

/** Ends an agent's open turn: results for what is open, the cursor, the answer to its asker, and then whatever waits (TURNS-2). */
export function endTurn(
  builder: DecisionBuilder,
  slug: string,
  outcome: Exclude<TurnOutcome, 'waiting'>,
): void {
  const turn = openTurn(builder, slug);
  if (!turn) return;
  const asked = askedBy(builder, turn);
  for (const call of turn.openCalls) addResult(builder, turn, call, { content: unfinished(call, outcome) });
  if (outcome === 'completed') nameConversation(builder);
  addTurnEnded(builder, turn, outcome);
  for (const other of asked) abortTurn(builder, other, builder.nextIndex - 1);
  if (turn.delegatedBy) answerAsker(builder, turn, outcome); // TURNS-6
  startTurns(builder);
}

/** What a call that got no result reads like: what may have happened is said to be unknown (L12). */
function unfinished(call: OpenCall, outcome: TurnOutcome): string {
  if (AWAITED_TOOLS.has(call.name)) return `[no answer: the turn was ${outcome}]`;
  // It had started before, even if it waits for a person's word, or for its place, now.
  return call.starts > 0
    ? `[the turn was ${outcome} while ${call.name} ran: whether it took effect is unknown]`
    : `[not run: the turn was ${outcome}]`;
}

function addTurnEnded(builder: DecisionBuilder, turn: Turn, outcome: TurnOutcome): void {
  builder.add({
    type: 'turn-ended',
    author: builder.agentAuthor(turn.agent),
    turnId: turn.turnId,
    agent: turn.agent,
    outcome,
    lastProcessedMessageIndex: builder.context
      .knowledge(turn.agent)
      .cursorAfter(builder.drafted, builder.nextIndex + 1),
  });
}

/** The first exchange gives a conversation its title. */
function nameConversation(builder: DecisionBuilder): void {
  if (builder.state.title !== null) return;
  const first = builder.find((entry) => entry.type === 'message' && entry.author.kind === 'person');
  const title = first?.type === 'message' ? titleFrom(first.content ?? '') : '';
  if (title) builder.add({ type: 'title-set', author: SYSTEM_AUTHOR, title });
}

/** A delegated turn has ended: its last words are the result of the asker's call. A late answer changes nothing. */
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
  const said = (words as MessageEntry | undefined)?.content;
  // What was cut short must not read like an answer that was meant to end there.
  const cut = cutBy((words as MessageEntry | undefined)?.finishReason);
  const isEnded = outcome === 'limited' || outcome === 'aborted';
  const why = isEnded ? `its turn was ${outcome}` : cut && `its answer was ${finishNotice(cut)}`;
  const mark = why ? `\n\n[${turn.agent} did not finish: ${why}]` : '';
  const content = said ? `${said}${mark}` : `[${turn.agent} gave no answer: its turn was ${outcome}]`;
  addResult(builder, asker, call, { content, answers });
  settle(builder, agent);
}

/** TURNS-8: no answer can wake these turns. */
export function endTurnsOfRemoved(builder: DecisionBuilder): void {
  for (const [slug, { turn }] of Object.entries(builder.state.agents)) {
    const isRemoved = !builder.context.roster.agents.has(slug);
    if (isRemoved && turn?.status === 'waiting') endTurn(builder, slug, 'aborted');
  }
}

/** Aborts an agent's turn and everything that it delegated. What runs is told; what waits ends at once. */
export function abortTurn(builder: DecisionBuilder, slug: string, key: number): void {
  const turn = openTurn(builder, slug);
  if (!turn) return;
  if (turn.status === 'waiting') {
    endTurn(builder, slug, 'aborted');
    return;
  }
  builder.effect({ type: 'abort-turn', agent: slug, turnId: turn.turnId, key });
  for (const other of askedBy(builder, turn)) abortTurn(builder, other, key);
}

/** The agents that work on what this turn delegated. */
function askedBy(builder: DecisionBuilder, turn: Turn): string[] {
  return Object.entries(builder.state.agents).flatMap(([slug, agent]) => {
    const place = agent.turn?.delegatedBy?.call;
    return place && turn.openCalls.some((call) => samePlace(call.place, place)) ? [slug] : [];
  });
}

export function openTurn(builder: DecisionBuilder, slug: string): Turn | null {
  return agentState(builder.state, slug).turn;
}

export function runningTurn(builder: DecisionBuilder, agent: string, turnId: string): Turn | undefined {
  const turn = openTurn(builder, agent);
  return turn?.turnId === turnId && turn.status === 'running' ? turn : undefined;
}
