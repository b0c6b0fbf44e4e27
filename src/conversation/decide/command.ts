import type { Refusal } from '../../kernel/index.ts';
import type {
  Author,
  CallPlace,
  Delivery,
  Entry,
  MessageEntry,
  Mode,
  ToolCall,
  Usage,
} from '../log/entry.ts';
import type { ReductionPlan } from '../reduction/cut.ts';
import type { AuditedOutcome, RepairCount } from '../tools/tool-rules.ts';

/** What the outside may ask of a conversation, and what comes back. `decide` maps one to the other. */

/** A message that somebody posted, its author established by the subject it came by. */
export interface Post {
  readonly id: string;
  readonly content: string;
  readonly author: { readonly id: string; readonly name: string };
  readonly to?: readonly string[];
  readonly delivery: Delivery;
  readonly sessionId?: string;
  readonly replyTo?: string;
  readonly includeInContext?: boolean;
  readonly isCollapsed?: boolean;
  readonly meta?: Record<string, unknown>;
}

/** What a model call brought, whatever its provider. */
export interface Answer {
  readonly content: string | null;
  readonly reasoning?: string;
  readonly toolCalls: readonly ToolCall[];
  readonly usage?: Usage;
  readonly model?: string;
  /** As `finishReasonOf` names it. */
  readonly finishReason?: string;
  /** The session that the agent wants to be given from now on. */
  readonly sessionId?: string;
  /** The entry's id and the place of the whole, when a file of that name holds it and `content` is a preview. */
  readonly id?: string;
  readonly fullOutputPath?: string;
}

/** Which call a report is about: reports of a turn that ended, or that goes on elsewhere, change nothing. */
export interface CallReport {
  readonly agent: string;
  readonly turnId: string;
  /** Milliseconds. */
  readonly duration: number;
  readonly requestHash: string;
  /** The log's length at which the request was built. */
  readonly upTo: number;
  /** Tokens that the request was estimated at. */
  readonly estimatedTokens?: number;
}

/** What a summary replaces, and its words. */
export interface Reduction
  extends Pick<ReductionPlan, 'covered' | 'leftOut' | 'shortened' | 'previewLength'> {
  readonly content: string;
  readonly writtenBy: 'model' | 'extract';
  /** Estimated tokens of the request before. */
  readonly tokensBefore: number;
  /** Set where the provider refused the request as too long. */
  readonly tokenRatio?: number;
  /** Of the model that wrote it. */
  readonly usage?: Usage;
  readonly model?: string;
}

export interface ClaimCommand {
  readonly type: 'claim';
  readonly daemon: string;
  /** The life of the ingress stream whose sequences the entries from here on name. */
  readonly ingress?: string;
  /** The claimant before has let go of it. */
  readonly handedOver?: boolean;
  readonly audited?: readonly AuditedOutcome[];
}

/** A turn that is not tried again, and what it was to answer. */
export interface GivenUp {
  readonly agent: string;
  readonly turnId: string;
  readonly trigger: readonly number[];
}

export type Command =
  /** A daemon that shares the work takes the conversation over, and with it what the log owes. */
  | ClaimCommand
  | { readonly type: 'post'; readonly post: Post; readonly ingressSequence?: number }
  | ({ readonly type: 'model-answered'; readonly answer: Answer } & CallReport)
  | ({
      readonly type: 'model-failed';
      readonly code: string;
      readonly message: string;
      readonly partial: string;
    } & CallReport)
  | ({
      readonly type: 'model-aborted';
      readonly partial: string;
      /** Set when it was not a person but a limit that ended it. */
      readonly limit?: { readonly name: string; readonly message: string };
    } & CallReport)
  /** The view was too large for the model: what is to be taken out of it, in words (V17). */
  | ({ readonly type: 'reduce-view'; readonly reduction: Reduction } & Omit<
      CallReport,
      'duration' | 'requestHash'
    >)
  | {
      readonly type: 'tool-finished';
      readonly agent: string;
      readonly turnId: string;
      readonly call: CallPlace;
      readonly result: string;
      readonly duration: number;
      /** The entry's id, when a file of that name holds the whole result. */
      readonly id?: string;
      readonly fullOutputPath?: string;
    }
  | { readonly type: 'set-phase'; readonly phase: string; readonly by: Author; readonly reason?: string }
  | {
      readonly type: 'set-mode';
      readonly mode: Mode;
      readonly agent?: string;
      /** In mode run: the workflow to execute. */
      readonly workflow?: string;
      /** In mode run: the message that the run begins with. */
      readonly input?: string;
      readonly by: Author;
    }
  /** What was said elsewhere, its places counted from 0: a conversation without messages begins with it. */
  | {
      readonly type: 'seed';
      readonly entries: readonly MessageEntry[];
      /** How many entries of the same history come before these. */
      readonly after: number;
      readonly agent: string;
      readonly by: Author;
      /** What is posted next: nothing is begun for a post that would be refused. */
      readonly post?: Post;
    }
  | { readonly type: 'stop'; readonly agent: string | null; readonly by: Author }
  | {
      readonly type: 'resume';
      readonly agent: string | null;
      readonly by: Author;
      /** The entry of the stop that is undone: nothing is resumed if it is not the newest one any more. */
      readonly stop?: number | undefined;
    }
  /** The log was just opened: what it owes is taken up again. */
  | { readonly type: 'recover'; readonly audited?: readonly AuditedOutcome[] }
  /** A person's word on a call that waits for it. */
  | {
      readonly type: 'answer';
      readonly approvalId: string;
      readonly answer: 'approve' | 'deny' | 'rerun' | 'result' | 'failed';
      readonly reason?: string;
      readonly result?: string;
      readonly by: Author;
      /** Of a publisher that is no approver. */
      readonly isStranger?: boolean;
    }
  /** Nobody answered in time. The core knows no clock: whoever says this has counted. */
  | { readonly type: 'expire-approval'; readonly approvalId: string };

/** What came of one model call. */
export type CallOutcome = Extract<
  Command,
  { readonly type: 'model-answered' | 'model-failed' | 'model-aborted' }
>;

/** Something to do once the entries are durable. `key` is the index of the entry that asks for it. */
export type Effect =
  | { readonly type: 'call-model'; readonly agent: string; readonly turnId: string; readonly key: number }
  | { readonly type: 'abort-turn'; readonly agent: string; readonly turnId: string; readonly key: number }
  | {
      readonly type: 'run-tool';
      readonly agent: string;
      readonly turnId: string;
      readonly call: CallPlace;
      readonly name: string;
      readonly arguments: string;
      /** A person approved this call; absent: it was released without. */
      readonly isApproved?: boolean;
      readonly key: number;
      /** Digest of the tool that a person accepted with this call. */
      readonly accepts?: string;
    };

/** The answer to whoever gave the command. */
export type Reply =
  | {
      readonly kind: 'posted';
      readonly id: string;
      readonly index: number;
      readonly duplicate: boolean;
      /** The agents that routing resolved. */
      readonly agents: readonly string[];
    }
  | { readonly kind: 'done' }
  | {
      readonly kind: 'recovered';
      readonly count: RepairCount;
      /** Turns that are not tried again. */
      readonly givenUp?: readonly GivenUp[];
    }
  /** The report was about something that is over; nothing was changed. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export interface Decision {
  /** To append, in this order, as one batch. */
  readonly entries: readonly Entry[];
  readonly effects: readonly Effect[];
  readonly reply: Reply;
}
