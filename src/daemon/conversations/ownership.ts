import type { ClaimCommand, Command, ConversationState, Decision } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { NewestAppend, WorkStatus } from '../../persistence/index.ts';
import type { ReachCrashPoint } from '../compose/faults.ts';

/**
 * Which conversations this daemon works on: all of them when its logs are its own (`SOLE_OWNER`), those that it has
 * claimed when several daemons share the logs (`cluster/lease.ts`).
 */
export interface Ownership {
  /** Other daemons may claim the same conversations. */
  readonly isShared: boolean;
  /** One owner for each time that the conversation is opened. */
  of(conversation: string): ConversationOwner;
  /**
   * False: another daemon owns the conversation by now. Read from the log before anything that no log can refuse.
   * True when `signal` is aborted. Does not reject.
   */
  mayAct(conversation: string, signal: AbortSignal): Promise<boolean>;
}

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
  /** `known`: the sequence of the newest append in memory. True: the log has more. */
  isStale(state: ConversationState, known: number, newest: NewestAppend | null): boolean;
  /** The claim to append first; null: none is needed. Rejects with `CONVERSATION_MOVED`. `claimEnded` must follow. */
  claim(request: ClaimRequest): Promise<ClaimCommand | null>;
  /** The entries that were decided with `claim` are durable. */
  appended(claim: Decision | null): void;
  claimEnded(): void;
  /** Resolves when no claim is being appended. */
  settled(): Promise<void>;
  /** Written with each append, for the other daemons. */
  workStatus(state: ConversationState): WorkStatus | undefined;
  /** Another process appended to the log first. */
  conflict(): ParleyError;
}

/** The data directory has a lock (`persistence/jsonl/directory/lock.ts`): nothing else writes to these logs. */
export const SOLE_OWNER: Ownership = {
  isShared: false,
  of: (conversation) => ({
    isOurs: () => true,
    isStale: () => false,
    claim: async () => null,
    appended: () => undefined,
    claimEnded: () => undefined,
    settled: async () => undefined,
    workStatus: () => undefined,
    conflict: () =>
      new ParleyError('LOG_CONFLICT', `another process wrote to conversation ${conversation}`, {
        hint: 'only one daemon may write to a data directory',
      }),
  }),
  mayAct: async () => true,
};

const MOVED = 'CONVERSATION_MOVED';

export function moved(conversation: string): ParleyError {
  return new ParleyError(MOVED, `another daemon works on conversation ${conversation}`, {
    hint: 'ask again: the request goes to that daemon',
  });
}

export function isMoved(error: unknown): boolean {
  return error instanceof ParleyError && isMovedCode(error.code);
}

export function isMovedCode(code: string): boolean {
  return code === MOVED;
}
