import type { ConversationState } from '../state/state.ts';
import { answerApproval, expireApproval } from './approvals.ts';
import { answerCalls, expireCall } from './caller-results.ts';
import type { Command, Decision, Reply } from './command.ts';
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
} from './controls.ts';
import { type DecideContext, DecisionBuilder } from './decision-builder.ts';
import { copy, fork, refusalOfPartialCopy } from './fork.ts';
import { post, seed } from './posting.ts';
import { claim, recover } from './repair.ts';
import {
  attemptFailed,
  modelAborted,
  modelAnswered,
  modelFailed,
  reduceView,
  toolFinished,
} from './reports.ts';
import { toolAsks } from './server-questions.ts';

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

export interface Decided {
  readonly decision: Decision;
  /** After its entries. */
  readonly state: ConversationState;
}

function replyTo(builder: DecisionBuilder, command: Command): Reply {
  const refused = refusalOfPartialCopy(builder.state, command);
  if (refused) return { kind: 'refused', refusal: refused };
  switch (command.type) {
    case 'post':
      return post(builder, command.post, command.ingressSequence);
    case 'model-answered':
      return report(modelAnswered(builder, command, command.answer));
    case 'model-failed':
      return report(modelFailed(builder, command));
    case 'attempt-failed':
      return report(attemptFailed(builder, command));
    case 'model-aborted':
      return report(modelAborted(builder, command));
    case 'reduce-view':
      return report(reduceView(builder, command));
    case 'tool-finished':
      return report(toolFinished(builder, command));
    case 'tool-asks':
      return report(toolAsks(builder, command));
    case 'title-written':
      return titleWritten(builder, command);
    case 'label':
      return label(builder, command);
    case 'feedback':
      return feedback(builder, command);
    case 'set-phase':
      return setPhase(builder, command);
    case 'set-mode':
      return setMode(builder, command);
    case 'seed':
      return seed(builder, command);
    case 'copy':
      return copy(builder, command);
    case 'fork':
      return fork(builder, command);
    case 'hire':
      return hire(builder, command);
    case 'dismiss':
      return dismiss(builder, command);
    case 'change-team':
      return changeTeam(builder, command);
    case 'stop':
      return stop(builder, command);
    case 'resume':
      return resume(builder, command);
    case 'recover':
      return { kind: 'recovered', count: recover(builder, command.audited) };
    case 'claim':
      return { kind: 'recovered', ...claim(builder, command) };
    case 'answer':
      return answerApproval(builder, command);
    case 'answer-calls':
      return answerCalls(builder, command);
    case 'expire-call':
      return report(expireCall(builder, command.call));
    case 'expire-approval':
      return report(expireApproval(builder, command.approvalId));
  }
}

function report(applied: boolean): Reply {
  return { kind: applied ? 'done' : 'stale' };
}
