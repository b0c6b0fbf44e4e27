import type { ConversationState } from '../state/state.ts';
import { answerApproval, expireApproval } from './approvals.ts';
import { claim } from './claims.ts';
import type { Command, Decision, Reply } from './command.ts';
import { resume, setMode, setPhase, stop } from './controls.ts';
import { type DecideContext, Drafting } from './drafting.ts';
import { post } from './posting.ts';
import { recover } from './repair.ts';
import { modelAborted, modelAnswered, modelFailed, reduceView, toolFinished } from './reports.ts';
import { seed } from './seed.ts';

/**
 * The one decision: what a command adds to the log, and what is to be done once that is durable.
 *
 * D1 Pure: the same state, command, time and ids give the same entries and effects.
 * D2 What it decides is one batch: visible whole or not at all.
 * D3 Every effect is keyed by an entry of the log, so that after a crash the log alone says what is owed.
 */
export function decide(state: ConversationState, command: Command, context: DecideContext): Decision {
  const drafting = new Drafting(state, context);
  return drafting.decision(apply(drafting, command));
}

function apply(drafting: Drafting, command: Command): Reply {
  switch (command.type) {
    case 'post':
      return post(drafting, command.post, command.ingressSequence);
    case 'model-answered':
      return report(modelAnswered(drafting, command, command.answer));
    case 'model-failed':
      return report(modelFailed(drafting, command));
    case 'model-aborted':
      return report(modelAborted(drafting, command));
    case 'reduce-view':
      return report(reduceView(drafting, command));
    case 'tool-finished':
      return report(toolFinished(drafting, command));
    case 'set-phase':
      return setPhase(drafting, command);
    case 'set-mode':
      return setMode(drafting, command);
    case 'seed':
      return seed(drafting, command);
    case 'stop':
      return stop(drafting, command);
    case 'resume':
      return resume(drafting, command);
    case 'recover':
      return { kind: 'recovered', count: recover(drafting, command.audited) };
    case 'claim':
      return { kind: 'recovered', ...claim(drafting, command) };
    case 'answer':
      return answerApproval(drafting, command);
    case 'expire-approval':
      return report(expireApproval(drafting, command.approvalId));
  }
}

function report(applied: boolean): Reply {
  return { kind: applied ? 'done' : 'stale' };
}
