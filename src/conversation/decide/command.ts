import type { JsonRecord, Refusal } from '../../kernel/index.ts';
import type { TypedAnswer } from '../log/answer.ts';
import type { ClientTool, ToolChoice } from '../log/client-tools.ts';
import type {
  Author,
  Blocks,
  CallPlace,
  Candidate,
  DeliveryMode,
  Entry,
  FeedbackValue,
  Mode,
  ReportedCall,
  SentPrompt,
  ServerAsks,
  TeamChange,
  ToolCall,
  Usage,
} from '../log/entry.ts';
import type { FilePart, Part } from '../log/parts.ts';
import type { ReductionPlan } from '../reduction/reduction-builder.ts';
import type { ToolArguments } from '../tools/conversation-tools.ts';
import type { AuditedOutcome, RepairCount } from '../tools/tool-rules.ts';

/** The commands that a conversation accepts, and the decision that `decide` returns. */

/** A person's message. The subject that it was posted to determined its author. */
export interface Post {
  readonly id: string;
  readonly content: string;
  /** Set if it has a file; its texts are `content` (PARTS-1). */
  readonly parts?: readonly Part[];
  readonly author: { readonly id: string; readonly name: string };
  /** Agent slugs, each once, at least one; absent: routing decides. */
  readonly to?: readonly string[];
  readonly delivery: DeliveryMode;
  /** Starts a run of this workflow with the message as its input. */
  readonly workflow?: string;
  readonly tools?: readonly ClientTool[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean | undefined;
  readonly sessionId?: string;
  /** The sender may set the sessions of the agents that the message wakes (PERSON-7). */
  readonly setsSession?: true;
  readonly replyTo?: string;
  readonly schema?: JsonRecord;
  readonly includeInContext?: boolean;
  readonly isCollapsed?: boolean;
  /** The span that caused it (W3C Trace Context). */
  readonly traceparent?: string;
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** The answer of a model call, independent of the provider. */
export interface Answer {
  readonly content: string | null;
  /** Files that the agent gave with it. */
  readonly files?: readonly FilePart[] | undefined;
  readonly reasoning?: string;
  readonly toolCalls: readonly ToolCall[];
  readonly usage?: Usage;
  /** As reported by the provider. */
  readonly model?: string;
  /** As `finishReasonOf` returns it. */
  readonly finishReason?: string;
  /** The session that the agent wants in its next requests. */
  readonly sessionId?: string;
  readonly blocks?: Blocks;
  /** Calls that an agent in another process made by itself. */
  readonly reported?: readonly ReportedCall[];
  /** What the session of a coding agent was told before it. */
  readonly prompt?: SentPrompt;
  /** Set if it is the last of a turn that has a schema. */
  readonly typed?: TypedAnswer;
  /** Set if `content` is a preview: the file with the full text, and the entry's id, which is in its name. */
  readonly id?: string;
  readonly fullOutputPath?: string;
}

/** What an agent in another process did before its answer, also if there is none. */
export type AnswerSoFar = Pick<Answer, 'sessionId' | 'reported' | 'prompt'>;

/** The call of a report. A report of a turn that ended, or that another process resumed, changes nothing. */
export interface CallReport {
  readonly agent: string;
  readonly turnId: string;
  /** Milliseconds. */
  readonly duration: number;
  readonly requestHash: string;
  /** Index of the entry that requested the call (`Turn.upTo`). */
  readonly upTo: number;
  /** Estimated tokens of the request. */
  readonly estimatedTokens?: number;
}

/** A candidate whose call failed, retries included, before any of its answer was shown; and the one that is called next. */
export interface FailedAttempt {
  readonly candidate: Candidate;
  readonly next: Candidate;
  readonly code: string;
  readonly message: string;
  /** Absent: the request was not sent. */
  readonly requestHash?: string;
}

/** What a summary replaces, and its text. */
export interface Reduction
  extends Pick<ReductionPlan, 'covered' | 'leftOut' | 'shortened' | 'previewLength'>,
    Partial<Pick<ReductionPlan, 'withoutFiles'>> {
  readonly content: string;
  readonly writtenBy: 'model' | 'extract';
  /** Estimated tokens of the request before the reduction. */
  readonly tokensBefore: number;
  /** Set if the provider refused the request as too long. */
  readonly tokenRatio?: number;
  /** The usage of the call that wrote the summary. */
  readonly usage?: Usage;
  readonly model?: string;
}

export interface ClaimCommand {
  readonly type: 'claim';
  readonly daemon: string;
  /** Id of the ingress stream whose sequences the entries from here on contain. */
  readonly ingress?: string;
  /** The previous owner released the conversation. */
  readonly handedOver?: boolean;
  readonly audited?: readonly AuditedOutcome[];
}

/** A turn that is not resumed any more, and its trigger. */
export interface GivenUp {
  readonly agent: string;
  readonly turnId: string;
  readonly trigger: readonly number[];
}

export type Command =
  /** A daemon that shares logs takes over the conversation and resumes its outstanding work. */
  | ClaimCommand
  | { readonly type: 'post'; readonly post: Post; readonly ingressSequence?: number }
  | ({ readonly type: 'model-answered'; readonly answer: Answer } & CallReport)
  | ({
      readonly type: 'model-failed';
      readonly code: string;
      readonly message: string;
      readonly partial: string;
      /** The wait that the provider asks for. Milliseconds. */
      readonly afterMs?: number | undefined;
    } & CallReport &
      AnswerSoFar)
  /** As `model-failed`, where another candidate is left: it is asked next. */
  | ({ readonly type: 'attempt-failed' } & FailedAttempt &
      Omit<CallReport, 'requestHash' | 'estimatedTokens'>)
  | ({
      readonly type: 'model-aborted';
      readonly partial: string;
      /** Set if a limit ended the call, not a person. */
      readonly limit?: { readonly name: string; readonly message: string };
    } & CallReport &
      AnswerSoFar)
  /** The view was too large for the model: replace parts of it by a summary or previews (V17). */
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
      readonly files?: readonly FilePart[];
      /** The entry's id, if a file named after it contains the full result. */
      readonly id?: string;
      readonly fullOutputPath?: string;
    }
  /** The server of a running call asks a person; null: it waits no longer (SERVER-QUESTION-1). */
  | {
      readonly type: 'tool-asks';
      readonly agent: string;
      readonly turnId: string;
      readonly call: CallPlace;
      readonly asks: ServerAsks | null;
    }
  | {
      /** A model wrote a title for the one that the conversation has; a title that a person gave since stays. */
      readonly type: 'title-written';
      readonly instead: string;
      readonly title: string;
      readonly usage?: Usage | undefined;
      readonly model?: string | undefined;
    }
  | {
      readonly type: 'label';
      /** Absent: unchanged. */
      readonly title?: string;
      readonly archived?: boolean;
      readonly by: Author;
    }
  /** What a person thinks of an answer. */
  | {
      readonly type: 'feedback';
      readonly on: number;
      readonly value: FeedbackValue;
      readonly note?: string | undefined;
      readonly by: Author;
    }
  | { readonly type: 'set-phase'; readonly phase: string; readonly by: Author; readonly reason?: string }
  | {
      readonly type: 'set-mode';
      readonly mode: Mode;
      /** It has the floor; null: no agent has it. */
      readonly agent?: string | null;
      /** In mode run: the workflow. */
      readonly workflow?: string;
      /** In mode run: the first message of the run. */
      readonly input?: string;
      readonly by: Author;
    }
  /** Texts of `by`, some of them quotations, that a conversation without messages begins with. */
  | {
      readonly type: 'seed';
      readonly messages: readonly SeededMessage[];
      /** Number of messages of the same history before these. */
      readonly after: number;
      readonly by: Author;
      /** The post that follows: if it would be refused, nothing is appended. */
      readonly post?: Post;
    }
  /** Entries of `from`, in order, that a fork begins with; those that it has already change nothing. */
  | { readonly type: 'copy'; readonly entries: readonly Entry[]; readonly from: string }
  /** Completes the copy of `from` up to entry `at`. */
  | { readonly type: 'fork'; readonly from: string; readonly at: number; readonly by: Author }
  /** An operator adds an agent to this conversation. */
  | { readonly type: 'hire'; readonly agent: ToolArguments<'hire'>; readonly by: Author }
  | { readonly type: 'dismiss'; readonly agent: string; readonly reason?: string; readonly by: Author }
  /** The configuration was replaced: these agents differ. */
  | { readonly type: 'change-team'; readonly changes: readonly TeamChange[]; readonly by: Author }
  | { readonly type: 'stop'; readonly agent: string | null; readonly by: Author }
  | {
      readonly type: 'resume';
      readonly agent: string | null;
      readonly by: Author;
      /** Index of the stop to undo: nothing is resumed if a newer stop exists. */
      readonly stop?: number | undefined;
    }
  /** The log was opened: resume its outstanding work. */
  | { readonly type: 'recover'; readonly audited?: readonly AuditedOutcome[] }
  /** A person's answer to an approval request. */
  | {
      readonly type: 'answer';
      readonly approvalId: string;
      readonly answer: 'approve' | 'deny' | 'rerun' | 'result' | 'failed';
      readonly reason?: string;
      readonly result?: string;
      /** Other arguments for the call that is approved, as JSON text. */
      readonly arguments?: string | undefined;
      /** GRANTS-1 */
      readonly always?: boolean | undefined;
      readonly by: Author;
      /** The publisher is not an approver. */
      readonly isStranger?: boolean;
    }
  /** The author of a post answers calls of the tools that it brought. All of them, or none. */
  | { readonly type: 'answer-calls'; readonly results: readonly CallersResult[]; readonly by: Author }
  | { readonly type: 'expire-call'; readonly call: CallPlace }
  /** The time for an answer is over. The core has no clock: the daemon measures the time. */
  | { readonly type: 'expire-approval'; readonly approvalId: string };

/** A text and files of a history. */
export interface SeededMessage {
  readonly content: string;
  /** Present if it has files. */
  readonly parts?: readonly Part[] | undefined;
}

export interface CallersResult {
  readonly call: CallPlace;
  readonly content: string;
  readonly files?: readonly FilePart[];
}

export type CommandOf<T extends Command['type']> = Extract<Command, { type: T }>;
export type CallOutcome = CommandOf<'model-answered' | 'model-failed' | 'model-aborted'>;

/** An action to start once the entries are durable. `key` is the index of the entry that requests it. */
export type Effect = { readonly agent: string; readonly turnId: string; readonly key: number } & (
  | { readonly type: 'call-model' }
  | { readonly type: 'abort-turn' }
  | {
      readonly type: 'run-tool';
      readonly call: CallPlace;
      readonly name: string;
      readonly arguments: string;
      /** The agent whose tool policy applies (HIRING-4); absent: `agent`. */
      readonly policyAgent?: string;
      /** A person approved this call; absent: it needed no approval. */
      readonly isApproved?: boolean;
      /** Digest of the tool definition that a person accepted with this call. */
      readonly accepts?: string;
    }
  | {
      /** A person answered the server of a running call; null: declined, undefined: nobody did. */
      readonly type: 'answer-tool';
      readonly call: CallPlace;
      /** The question: the server may ask another one by now. */
      readonly asks: ServerAsks;
      readonly content: Readonly<Record<string, unknown>> | null | undefined;
    }
);

/** The reply to the sender of a command. */
export type Reply =
  | {
      readonly kind: 'posted';
      readonly id: string;
      readonly index: number;
      readonly duplicate: boolean;
      /** The agents that routing resolved. */
      readonly agents: readonly string[];
      /** Mentions that name no agent; absent: none. */
      readonly unknownMentions?: readonly string[];
      /** Fields of the post that its sender has no right to: the entry has them, and they have no effect. */
      readonly ignored?: readonly string[];
    }
  | { readonly kind: 'done' }
  /** `index`: the first new result, or the newest of those that the log has; what follows is after it. */
  | { readonly kind: 'answered'; readonly index: number }
  | {
      readonly kind: 'recovered';
      readonly count: RepairCount;
      /** Turns that are not resumed any more. */
      readonly givenUp?: readonly GivenUp[];
    }
  /** The report belongs to a call or turn that is over; nothing changed. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** What carrying out a command results in: its reply, or why it is refused. */
export type Outcome = Reply | Refusal;

export interface Decision {
  /** To be appended as one batch, in this order. */
  readonly entries: readonly Entry[];
  readonly effects: readonly Effect[];
  readonly reply: Reply;
}
