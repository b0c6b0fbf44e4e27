import type { AnswerOf, RequestOf, Verb } from '../bus/index.ts';
import type { ExplainedRequest, RequestMessage } from '../conversation/index.ts';

/** Names for the requests and answers of the request API. Their fields are described in `src/bus/contract.ts`. */

export type { AnswerOf };
export type Endpoint = Verb;
/** `post` names its publisher: as part of the subject, so that a server's permissions can bind it to credentials. */
type ClientRequest<V extends Verb> = V extends 'post'
  ? RequestOf<V> & { readonly publisher: string }
  : RequestOf<V>;

export type { ClientRequest as RequestOf };

/** Sends one request and returns its answer. */
export type SendRequest = <E extends Endpoint>(
  endpoint: E,
  body: ClientRequest<E>,
  options?: { signal?: AbortSignal },
) => Promise<AnswerOf<E>>;

export type Verbs = { [V in Verb]: { request: ClientRequest<V>; answer: AnswerOf<V> } };

/** `id` is made when it is left out. The same id again is answered, never appended twice. */
export type PostMessage = ClientRequest<'post'>;
export type PostAnswer = AnswerOf<'post'>;
export interface PostOptions {
  readonly signal?: AbortSignal;
  /** Posts on the subject of operators, which these credentials then need. An operator may start any workflow. */
  readonly asOperator?: boolean;
}
export type ConversationSummary = AnswerOf<'conversations'>['conversations'][number];
export type ConversationDetail = AnswerOf<'conversation'>;
export type RunDetail = NonNullable<ConversationDetail['run']>;
export type ConversationMetadata = ConversationDetail['metadata'];
export type AgentSummary = AnswerOf<'agents'>['agents'][number];
export type ViewMessage = RequestMessage;
export type View = ExplainedRequest;
export type PendingApproval = AnswerOf<'approvals'>['approvals'][number];
export type PhaseSummary = AnswerOf<'phases'>['phases'][number];
export type WorkflowSummary = AnswerOf<'workflows'>['workflows'][number];
export type ToolSummary = AnswerOf<'tools'>['tools'][number];
/** An MCP server as the daemon sees it. */
export type ToolServerSummary = AnswerOf<'tools'>['servers'][number];
/** A refused post, without its content. */
export type DeadLetterSummary = AnswerOf<'dead'>['letters'][number];
export type DeadLetterDetail = AnswerOf<'dead-letter'>;
export type WhatIfSummary = AnswerOf<'what-if'>;
export type WhatIfResult = AnswerOf<'what-if-result'>;
/** A turn that was sent again. */
export type WhatIfTurn = WhatIfResult['results'][number];
export type WhatIfRun = WhatIfTurn['changed'][number];
export type DeletionAnswer = AnswerOf<'delete'>;
