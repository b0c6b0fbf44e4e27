import type { Answer, CallReport, Command } from './command.ts';
import type { Drafting } from './drafting.ts';
import { SYSTEM_AUTHOR, type ToolCall, type TurnOutcome } from './entry.ts';
import { wireCallId } from './knowledge.ts';
import {
  agentState,
  isStopped,
  mustAbort,
  type OpenCall,
  samePlace,
  type Turn,
  type Waiting,
} from './state.ts';

/**
 * How a turn begins, goes on and ends.
 *
 * U1 One turn of an agent at a time (V11); the next trigger is what has waited longest (V12).
 * U2 A turn ends with its cursor in the same batch (L8), and with a result for every open call (V11).
 * U3 A report about a turn that is over, or about a request that was answered already, changes nothing.
 * U4 A turn that is to end (a stop, an interruption) starts no tool and makes no further model call.
 */

/** Starts a turn of every agent that is free and has something waiting. */
export function startTurns(drafting: Drafting): void {
  for (const slug of Object.keys(drafting.state.agents)) startTurn(drafting, slug);
}

function startTurn(drafting: Drafting, slug: string): void {
  const agent = agentState(drafting.state, slug);
  if (agent.turn || agent.waiting.length === 0) return; // U1
  if (isStopped(drafting.state, slug) || !drafting.context.roster.agents.has(slug)) return;
  const turnId = drafting.context.newId();
  const key = drafting.add({
    type: 'turn-started',
    author: drafting.agentAuthor(slug),
    turnId,
    agent: slug,
    trigger: nextTrigger(agent.waiting),
    upTo: drafting.nextIndex,
    hops: 0,
  });
  drafting.effect({ type: 'call-model', agent: slug, turnId, key });
}

/** V12: the oldest; if that was to be steered, all that were to be steered join it. */
export function nextTrigger(waiting: readonly Waiting[]): number[] {
  const [oldest] = waiting;
  if (!oldest) return [];
  if (oldest.delivery === 'queue') return [oldest.index];
  return waiting.filter((item) => item.delivery !== 'queue').map((item) => item.index);
}

export function modelAnswered(drafting: Drafting, report: CallReport, answer: Answer): boolean {
  const turn = askingTurn(drafting, report);
  if (!turn) return false; // U3
  const index = addAnswer(drafting, report, {
    content: answer.content,
    tool_calls: answer.toolCalls.length > 0 ? [...answer.toolCalls] : undefined,
    reasoning: answer.reasoning,
    usage: answer.usage,
    model: answer.model,
    partType: 'text',
  });
  if (answer.toolCalls.length === 0) {
    endTurn(drafting, report.agent, 'completed');
    return true;
  }
  if (mustAbort(drafting.state, report.agent)) {
    endTurn(drafting, report.agent, 'aborted'); // U4
    return true;
  }
  answer.toolCalls.forEach((call, position) => {
    const { name, arguments: args } = call.function;
    startTool(drafting, turn, { place: { index, position }, name, arguments: args, started: false });
  });
  return true;
}

/** L16: a failure is content, so that "continue" has an anchor. */
export function modelFailed(
  drafting: Drafting,
  command: Extract<Command, { type: 'model-failed' }>,
): boolean {
  if (!askingTurn(drafting, command)) return false; // U3
  const error = `LLM_ERROR ${JSON.stringify({ code: command.code, message: command.message })}`;
  addAnswer(drafting, command, {
    content: command.partial ? `${command.partial}\n\n${error}` : error,
    partType: 'error',
  });
  endTurn(drafting, command.agent, 'failed');
  return true;
}

/** A person's abort is not an error (L16): what was said so far stays. */
export function modelAborted(
  drafting: Drafting,
  command: Extract<Command, { type: 'model-aborted' }>,
): boolean {
  if (!runningTurn(drafting, command.agent, command.turnId)) return false; // U3
  if (command.partial) addAnswer(drafting, command, { content: command.partial, partType: 'text' });
  endTurn(drafting, command.agent, 'aborted');
  return true;
}

export function toolFinished(
  drafting: Drafting,
  command: Extract<Command, { type: 'tool-finished' }>,
): boolean {
  const turn = runningTurn(drafting, command.agent, command.turnId);
  const call = turn?.openCalls.find((open) => samePlace(open.place, command.call));
  if (!turn || !call) return false; // U3: answered already, or over
  addResult(drafting, turn, call, command.result, command.duration);
  const after = agentState(drafting.state, command.agent).turn;
  if (after && after.openCalls.length === 0) continueTurn(drafting, after);
  return true;
}

/** Every call has its result: the model is asked again, shown what was steered to it meanwhile (V8). */
export function continueTurn(drafting: Drafting, turn: Turn): void {
  const { limits } = drafting.context;
  if (mustAbort(drafting.state, turn.agent)) {
    endTurn(drafting, turn.agent, 'aborted'); // U4
    return;
  }
  if (turn.modelCalls >= limits.modelCallsPerTurn) {
    drafting.add({
      type: 'limit-reached',
      author: SYSTEM_AUTHOR,
      turnId: turn.turnId,
      agent: turn.agent,
      limit: 'modelCallsPerTurn',
      content: `${turn.agent} made ${turn.modelCalls} model calls in one turn; the limit is ${limits.modelCallsPerTurn}`,
    });
    endTurn(drafting, turn.agent, 'limited');
    return;
  }
  const steered = agentState(drafting.state, turn.agent).waiting.filter((item) => item.delivery === 'steer');
  if (steered.length > 0) {
    drafting.add({
      type: 'message-delivered',
      author: SYSTEM_AUTHOR,
      turnId: turn.turnId,
      agent: turn.agent,
      entries: steered.map((item) => item.index),
    });
  }
  drafting.effect({
    type: 'call-model',
    agent: turn.agent,
    turnId: turn.turnId,
    key: drafting.nextIndex - 1,
  });
}

/** Ends an agent's open turn: results for what is open, the cursor, and then whatever waits (U2). */
export function endTurn(drafting: Drafting, slug: string, outcome: Exclude<TurnOutcome, 'waiting'>): void {
  const turn = agentState(drafting.state, slug).turn;
  if (!turn) return;
  for (const call of turn.openCalls) addResult(drafting, turn, call, unfinished(call, outcome), 0);
  drafting.add({
    type: 'turn-ended',
    author: drafting.agentAuthor(slug),
    turnId: turn.turnId,
    agent: slug,
    outcome,
    lastProcessedMessageIndex: drafting.context
      .knowledge(slug)
      .cursorAfter(drafting.drafted, drafting.nextIndex + 1),
  });
  startTurns(drafting);
}

/** What a call that got no result reads like: what may have happened is said to be unknown (L12). */
function unfinished(call: OpenCall, outcome: TurnOutcome): string {
  return call.started
    ? `[the turn was ${outcome} while ${call.name} ran: whether it took effect is unknown]`
    : `[not run: the turn was ${outcome}]`;
}

export function runningTurn(drafting: Drafting, agent: string, turnId: string): Turn | undefined {
  const turn = agentState(drafting.state, agent).turn;
  return turn?.turnId === turnId && turn.status === 'running' ? turn : undefined;
}

/** The running turn that waits for this report's model call: none while tools run, none twice (U3). */
function askingTurn(drafting: Drafting, report: CallReport): Turn | undefined {
  const turn = runningTurn(drafting, report.agent, report.turnId);
  return turn && turn.openCalls.length === 0 && report.upTo >= turn.answeredUpTo ? turn : undefined;
}

/** The intent is durable before the tool runs (L9). */
export function startTool(drafting: Drafting, turn: Turn, call: OpenCall): void {
  const key = drafting.add({
    type: 'tool-started',
    author: drafting.agentAuthor(turn.agent),
    turnId: turn.turnId,
    call: call.place,
    toolName: call.name,
  });
  drafting.effect({
    type: 'run-tool',
    agent: turn.agent,
    turnId: turn.turnId,
    call: call.place,
    name: call.name,
    arguments: call.arguments,
    key,
  });
}

export function addResult(
  drafting: Drafting,
  turn: Turn,
  call: OpenCall,
  content: string,
  duration: number,
): void {
  drafting.add({
    type: 'message',
    role: 'tool',
    author: drafting.agentAuthor(turn.agent),
    agentId: turn.agent,
    turnId: turn.turnId,
    content,
    toolName: call.name,
    tool_call_id: wireCallId(call.place),
    call: call.place,
    partType: 'tool_result',
    duration,
  });
}

interface AnswerFields {
  readonly content: string | null;
  readonly partType: 'text' | 'error';
  readonly tool_calls?: ToolCall[];
  readonly reasoning?: string;
  readonly usage?: Answer['usage'];
  readonly model?: string;
}

function addAnswer(drafting: Drafting, report: CallReport, fields: AnswerFields): number {
  const { state } = drafting;
  return drafting.add({
    type: 'message',
    role: 'assistant',
    author: drafting.agentAuthor(report.agent),
    agentId: report.agent,
    turnId: report.turnId,
    mode: state.mode,
    phase: state.phase,
    sessionId: agentState(state, report.agent).sessionId ?? undefined,
    duration: report.duration,
    requestHash: report.requestHash,
    upTo: report.upTo,
    ...fields,
  });
}
