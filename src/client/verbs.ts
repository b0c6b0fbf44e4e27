import type { Delivery, Entry, ExplainedRequest, Mode, RequestMessage, Used } from '../conversation/index.ts';

/** The verbs of the request API with their bodies and answers (docs/spec/wire.md). */

/** A message as it is posted; only `content` is required of a sender, the rest says where and by whom. */
export interface PostMessage {
  readonly conversation: string;
  readonly content: string;
  /** Who posts: part of the subject, so that a server's permissions can bind it to credentials. */
  readonly publisher: string;
  /** Made when left out. The same id again is answered, never appended twice. */
  readonly id?: string;
  /** Slugs of the agents that are to answer. */
  readonly to?: readonly string[];
  readonly delivery?: Delivery;
  readonly author?: { readonly name: string };
  readonly sessionId?: string;
  readonly replyTo?: string;
  readonly includeInContext?: boolean;
  readonly meta?: Readonly<Record<string, unknown>>;
}

export interface PostAnswer {
  readonly conversation: string;
  readonly id: string;
  readonly index: number;
  /** True if this id was in the log already; `index` is then its first place. */
  readonly duplicate: boolean;
  /** Slugs of the agents the message was routed to. */
  readonly agents: readonly string[];
}

export interface ConversationSummary {
  readonly id: string;
  readonly title: string | null;
  readonly phase: string;
  readonly mode: string;
  readonly activeAgent: string | null;
  readonly length: number;
  /** ISO 8601. */
  readonly updatedAt: string;
  /** What model calls used so far; absent where the list is older than these fields. */
  readonly tokens?: number;
  readonly usd?: number;
  /** Slugs of the agents whose turn runs, and of those whose turn waits for somebody. */
  readonly running: readonly string[];
  readonly waiting: readonly string[];
  /** Slugs of the agents whose last turn a limit ended; `resume` continues them. Absent in answers of older daemons. */
  readonly limited?: readonly string[];
  /** Slugs of the stopped agents for which messages or a node of a run wait. Absent in answers of older daemons. */
  readonly stopped?: readonly string[];
}

export interface ConversationDetail {
  readonly id: string;
  readonly title: string | null;
  readonly phase: string;
  readonly mode: string;
  readonly activeAgent: string | null;
  /** Null outside mode run. Absent in answers of older daemons. */
  readonly run?: RunDetail | null;
  readonly length: number;
  readonly metadata: ConversationMetadata;
  readonly agents: Readonly<
    Record<string, { lastProcessedMessageIndex: number; sessionId?: string; status: string }>
  >;
}

export interface RunDetail {
  readonly runId: string;
  readonly workflow: string;
  readonly node: string;
  /** The agent of the node. */
  readonly agent: string | null;
  /** The run begins with the first message to that agent. */
  readonly awaitsInput: boolean;
}

export interface AgentSummary {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly phases: readonly string[];
  readonly modes: readonly string[];
  readonly runtime: string;
  readonly status: string;
}

export interface ConversationMetadata {
  /** The newest summary that an agent is shown for what no longer fits its model. */
  readonly summary?: string;
  readonly referencedArticles: readonly string[];
  /** Milliseconds in model calls and tools, by slug. */
  readonly executionMs: Readonly<Record<string, number>>;
  /** Tokens in and out, and what they cost as far as prices are configured. */
  readonly tokens: number;
  readonly usd: number;
  /** The same by slug, in full. */
  readonly usage: Readonly<Record<string, Used>>;
}

export type ViewMessage = RequestMessage;
export type View = ExplainedRequest;

export interface PendingApproval {
  readonly approvalId: string;
  readonly conversation: string;
  readonly agent: string;
  readonly tool: string;
  /** JSON text, whole, as the model wrote it. */
  readonly arguments: unknown;
  readonly risk: string;
  readonly mayHaveRun: boolean;
}

export interface PhaseSummary {
  readonly phase: string;
  readonly description: string;
  /** Phases that an agent may enter from here; a person may enter any. */
  readonly next: readonly string[];
}

export interface WorkflowSummary {
  readonly id: string;
  readonly start: string;
  readonly nodes: readonly {
    readonly node: string;
    readonly agent: string;
    readonly outcomes: Readonly<Record<string, string>>;
  }[];
}

export interface ToolSummary {
  readonly name: string;
  readonly risk: 'safe' | 'risky';
}

/** An MCP server as the daemon sees it. */
export interface ToolServerSummary {
  readonly server: string;
  readonly state: 'connecting' | 'ready' | 'failed';
  /** Wire names. */
  readonly tools: readonly string[];
  /** Of these, the ones that are new or changed since they were accepted. */
  readonly unaccepted?: readonly string[];
  /** Why it failed. */
  readonly error?: string;
}

/** A refused post, without what it said. */
export interface DeadLetterSummary {
  /** Its place among the dead letters: newer ones have higher ones. */
  readonly sequence: number;
  /** ISO 8601. */
  readonly at: string;
  readonly publisher: string;
  readonly conversation: string;
  readonly code: string;
  readonly reason: string;
  readonly hint?: string;
  /** The id that the post had, or would have had. */
  readonly id?: string;
  /** Of the whole body, in bytes. */
  readonly size: number;
  /** Only the beginning of it was kept. */
  readonly truncated?: true;
  /** The letter is of many posts, and contains none of them. */
  readonly refused?: { readonly count: number };
  /** Where the ingress stream had the whole. */
  readonly ingress?: { readonly stream: string; readonly sequence: number };
}

export interface DeadLetterDetail extends DeadLetterSummary {
  readonly original: string;
}

type InConversation = { readonly conversation: string };
/** Who asks, for the log; the daemon's operator by default. */
type By = { readonly publisher?: string; readonly author?: { readonly name: string } };
type ForAgent = InConversation & By & { readonly agent?: string };

/** Older daemons answer `deleted` alone, or `deleted` and `existed`. */
export interface DeletionAnswer {
  /** False: `kept` says why; only with `lastEntryBefore`. */
  readonly deleted: boolean;
  readonly kept?: string;
  readonly existed?: boolean;
  readonly erased?: {
    readonly entries: number;
    /** Of tool calls. */
    readonly records: number;
    readonly outputs: number;
    readonly posts: number;
    readonly deadLetters: number;
  };
  /** What the daemon could not remove yet and tries again. */
  readonly left?: readonly string[];
  /** Where texts may be that no daemon can remove. */
  readonly notReached?: readonly string[];
}

export interface Verbs {
  post: { request: PostMessage; answer: PostAnswer };
  conversations: {
    request: { readonly after?: string; readonly limit?: number };
    /** `incomplete`: daemons that share the work and did not answer; what only they know is missing. */
    answer: {
      readonly conversations: readonly ConversationSummary[];
      readonly next: string | null;
      readonly incomplete?: readonly string[];
    };
  };
  conversation: { request: InConversation; answer: ConversationDetail };
  entries: {
    request: InConversation & { readonly from?: number; readonly limit?: number };
    answer: InConversation & { readonly length: number; readonly entries: readonly Entry[] };
  };
  view: { request: InConversation & { readonly agent: string; readonly at?: number }; answer: View };
  /** `lastEntryBefore` (ISO 8601): deletes nothing unless the newest entry is older, and nothing is under way. */
  delete: { request: InConversation & { readonly lastEntryBefore?: string }; answer: DeletionAnswer };
  phase: { request: InConversation & By & { readonly phase: string }; answer: ConversationDetail };
  mode: {
    request: InConversation &
      By & {
        readonly mode: Mode;
        readonly agent?: string;
        readonly workflow?: string;
        /** The message that a run begins with. */
        readonly input?: string;
      };
    answer: ConversationDetail;
  };
  stop: { request: ForAgent; answer: ConversationDetail };
  resume: { request: ForAgent; answer: ConversationDetail };
  approvals: {
    request: { readonly conversation?: string };
    answer: {
      readonly approvals: readonly PendingApproval[];
      /** How many more wait: the list did not fit. */
      readonly more?: number;
    };
  };
  answer: {
    request: By & {
      readonly approvalId: string;
      readonly answer: 'approve' | 'deny' | 'rerun' | 'result' | 'failed';
      readonly reason?: string;
      readonly result?: unknown;
    };
    answer: { readonly accepted: true };
  };
  dead: {
    request: {
      readonly publisher?: string;
      readonly conversation?: string;
      readonly code?: string;
      /** Only those in front of this sequence. */
      readonly before?: number;
      readonly limit?: number;
    };
    /** Newest first; `next` is the `before` of the next page, which may come after an empty one. */
    answer: { readonly letters: readonly DeadLetterSummary[]; readonly next: number | null };
  };
  'dead-letter': { request: { readonly sequence: number }; answer: DeadLetterDetail };
  'dead-retry': { request: { readonly sequence: number }; answer: PostAnswer };
  agents: { request: Readonly<Record<string, never>>; answer: { readonly agents: readonly AgentSummary[] } };
  tools: {
    request: Readonly<Record<string, never>>;
    answer: { readonly tools: readonly ToolSummary[]; readonly servers: readonly ToolServerSummary[] };
  };
  phases: { request: Readonly<Record<string, never>>; answer: { readonly phases: readonly PhaseSummary[] } };
  workflows: {
    request: Readonly<Record<string, never>>;
    answer: { readonly workflows: readonly WorkflowSummary[] };
  };
}

export type Endpoint = keyof Verbs;
export type RequestOf<E extends Endpoint> = Verbs[E]['request'];
export type AnswerOf<E extends Endpoint> = Verbs[E]['answer'];
