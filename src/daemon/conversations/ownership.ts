import type { ClaimCommand, Command, ConversationState, Decision } from '../../conversation/index.ts';
import { hasCode, ParleyError } from '../../kernel/index.ts';
import type { WorkStatus } from '../../persistence/index.ts';
import type { ReachCrashPoint } from '../observe/crash-points.ts';
/**
 * Which conversations this daemon works on: all of them when its logs are its own (`SoleOwner`), those that it has claimed when
 * several daemons share the logs (`ClaimingOwner` in `cluster/claims.ts`). Code that decides on a conversation does not ask which of the two it is.
 */
export interface Ownership {
  /** A conversation that is opened continues its outstanding work, and marks say which ones to open. False: a claim does both. */
  readonly recoversOnOpen: boolean;
  /** The request of a tool call is recorded before the log has its start, so a missing record proves that it did not run (L12). */
  readonly recordsProve: boolean;
  /** What is left of a conversation without a log may be removed: no other daemon may be creating it (DELETE-2). */
  readonly removesRest: boolean;
  /** One owner for each time that the conversation is opened. */
  of(conversation: string): ConversationOwner;
  /**
   * False: another daemon owns the conversation by now. Read from the log before anything that no log can refuse.
   * True when `signal` is aborted. Does not reject.
   */
  mayAct(conversation: string, signal: AbortSignal): Promise<boolean>;
  /** Compares the log of a conversation with the one that a request to delete names (DELETE-2). */
  logAsked(conversation: string, origin: number | null | undefined): Promise<LogAsked>;
}

export type LogAsked = 'same' | 'later' | 'unknown';

export interface ClaimRequest {
  readonly state: ConversationState;
  /** The commands to decide; a `claim` among them may come from a handover. */
  readonly commands: readonly Command[];
  /** The audit records of calls that a claim continues. */
  readonly audited: () => Promise<ClaimCommand['audited']>;
  /** The worker releases the conversation. */
  readonly isLeaving: boolean;
  readonly reach: ReachCrashPoint;
}

/** Whether one conversation in memory is this daemon's, and the claim that makes it so. */
export interface ConversationOwner {
  isOurs(state: ConversationState): boolean;
  /** The log has more than this memory of it: another daemon has appended, or the log was deleted. */
  isStale(memory: { readonly state: ConversationState; readonly newestSequence: number }): Promise<boolean>;
  /** The claim to append first; null: none is needed. Rejects with `CONVERSATION_MOVED`. `claimEnded` must follow. */
  claim(request: ClaimRequest): Promise<ClaimCommand | null>;
  /** The entries that were decided with `claim` are durable. */
  appended(claim: Decision | null): void;
  claimEnded(): void;
  /** Resolves when no claim is being appended. */
  idle(): Promise<void>;
  /** Written with each append, for the other daemons. */
  workStatus(state: ConversationState): WorkStatus | undefined;
  /** Another process appended to the log first. `isLost`: it owns the conversation now. */
  conflict(): { readonly error: ParleyError; readonly isLost: boolean };
}

/** The data directory has a lock (`persistence/jsonl/directory/lock.ts`): nothing else writes to these logs. */
export class SoleOwner implements Ownership {
  readonly recoversOnOpen = true;
  readonly recordsProve = true;
  readonly removesRest = true;

  of(conversation: string): ConversationOwner {
    return {
      isOurs: () => true,
      isStale: async () => false,
      claim: async () => null,
      appended: () => undefined,
      claimEnded: () => undefined,
      idle: async () => undefined,
      workStatus: () => undefined,
      conflict: () => ({ error: conflictIn(conversation), isLost: false }),
    };
  }

  async mayAct(): Promise<boolean> {
    return true;
  }

  async logAsked(): Promise<LogAsked> {
    return 'unknown';
  }
}

function conflictIn(conversation: string): ParleyError {
  return new ParleyError('LOG_CONFLICT', `another process wrote to conversation ${conversation}`, {
    hint: 'only one daemon may write to a data directory',
  });
}

const MOVED = 'CONVERSATION_MOVED';

export function moved(conversation: string): ParleyError {
  return new ParleyError(MOVED, `another daemon works on conversation ${conversation}`, {
    hint: 'ask again: the request goes to that daemon',
  });
}

export function isMoved(error: unknown): boolean {
  return hasCode(error, MOVED);
}

export function isMovedCode(code: string): boolean {
  return code === MOVED;
}
