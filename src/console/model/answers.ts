import type { AnswerOf } from '../../bus/contract.ts';

/** Names for parts of the daemon's answers. Their fields are described in `src/bus/contract.ts`. */

export type AgentCard = AnswerOf<'agents'>['agents'][number];
export type Phase = AnswerOf<'phases'>['phases'][number];
export type Workflow = AnswerOf<'workflows'>['workflows'][number];
export type ConversationRow = AnswerOf<'conversations'>['conversations'][number];
export type Activity = NonNullable<ConversationRow['activity']>[number];
export type FoundMessage = AnswerOf<'search'>['hits'][number];
export type FoundTurn = AnswerOf<'turns'>['turns'][number];
/** A refused post, without its content. */
export type DeadLetter = AnswerOf<'dead'>['letters'][number];
export type McpServer = AnswerOf<'tools'>['servers'][number];
export type Status = AnswerOf<'status'>;
export type DaemonStatus = Status['daemons'][number];
export type BackOffStatus = NonNullable<DaemonStatus['backOff']>[number];
export type ModelStatus = NonNullable<DaemonStatus['models']>[number];
export type ProgramStatus = NonNullable<DaemonStatus['programs']>[number];
export type WhatIf = AnswerOf<'what-if'>;
export type WhatIfResult = AnswerOf<'what-if-result'>;
export type WhatIfTurn = WhatIfResult['results'][number];
export type WhatIfRun = WhatIfTurn['changed'][number];
