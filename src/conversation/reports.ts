import type { Answer, CallReport, Command } from './command.ts';
import type { Drafting } from './drafting.ts';
import { addAnswer, addLimit, addResult } from './records.ts';
import { samePlace, type Turn } from './state.ts';
import { beginCalls, endTurn, runningTurn, settle } from './turns.ts';

/** What effects report back: a model's answer, its failure, its abort, a tool's result. False: it changed nothing (U3). */

type CommandOf<T extends Command['type']> = Extract<Command, { type: T }>;

export function modelAnswered(drafting: Drafting, report: CallReport, answer: Answer): boolean {
  if (!askingTurn(drafting, report)) return false;
  addAnswer(drafting, report, {
    content: answer.content,
    tool_calls: answer.toolCalls.length > 0 ? [...answer.toolCalls] : undefined,
    reasoning: answer.reasoning,
    usage: answer.usage,
    model: answer.model,
    ...(answer.sessionId ? { sessionId: answer.sessionId } : {}),
    partType: 'text',
  });
  if (answer.toolCalls.length === 0) endTurn(drafting, report.agent, 'completed');
  else beginCalls(drafting, report.agent);
  return true;
}

/** L16: a failure is content, so that "continue" has an anchor. */
export function modelFailed(drafting: Drafting, command: CommandOf<'model-failed'>): boolean {
  if (!askingTurn(drafting, command)) return false;
  const error = `LLM_ERROR ${JSON.stringify({ code: command.code, message: command.message })}`;
  addAnswer(drafting, command, {
    content: command.partial ? `${command.partial}\n\n${error}` : error,
    partType: 'error',
  });
  endTurn(drafting, command.agent, 'failed');
  return true;
}

/** An abort is not an error (L16): what was said so far stays. */
export function modelAborted(drafting: Drafting, command: CommandOf<'model-aborted'>): boolean {
  const turn = runningTurn(drafting, command.agent, command.turnId);
  if (!turn) return false;
  if (command.partial) addAnswer(drafting, command, { content: command.partial, partType: 'text' });
  if (command.limit) addLimit(drafting, turn, command.limit.name, command.limit.message);
  endTurn(drafting, command.agent, command.limit ? 'limited' : 'aborted');
  return true;
}

export function toolFinished(drafting: Drafting, command: CommandOf<'tool-finished'>): boolean {
  const turn = runningTurn(drafting, command.agent, command.turnId);
  const call = turn?.openCalls.find((open) => samePlace(open.place, command.call));
  if (!turn || !call?.started) return false;
  addResult(drafting, turn, call, {
    content: command.result,
    duration: command.duration,
    id: command.id,
    fullOutputPath: command.fullOutputPath,
  });
  settle(drafting, command.agent);
  return true;
}

/** The running turn that waits for this report's model call: none while tools run, none twice (U3). */
function askingTurn(drafting: Drafting, report: CallReport): Turn | undefined {
  const turn = runningTurn(drafting, report.agent, report.turnId);
  return turn && turn.openCalls.length === 0 && report.upTo >= turn.answeredUpTo ? turn : undefined;
}
