export { type PendingApproval, pendingApprovals } from './approvals.ts';
export { type AuditedCall, checkAudit } from './audit-laws.ts';
export { awayTokens, hardLimit, type Limit, NO_LIMIT, windowLimit } from './budget.ts';
export * from './command.ts';
export { planNextReduction, planReduction } from './compaction.ts';
export { Conversation, type ConversationRules, viewOf } from './conversation.ts';
export {
  argumentsSchema,
  availableTools,
  CONVERSATION_TOOLS,
  isConversationTool,
  toolError,
} from './conversation-tools.ts';
export type { ReductionInput, ReductionPlan, ViewLimits } from './cut.ts';
export { decide } from './decide.ts';
export type { DecideContext, Limits } from './drafting.ts';
export * from './entry.ts';
export { evolve } from './evolve.ts';
export {
  adviceOn,
  type Cut,
  cutBy,
  emptyAnswerFailure,
  finishNotice,
  finishReasonOf,
} from './finish-reason.ts';
export { FollowedLog, type LogPage, type LogRead, READ_AGAIN_MS } from './followed-log.ts';
export { Knowledge, type KnowledgePolicy, routedTo, wireCallId } from './knowledge.ts';
export { checkKnowledge } from './knowledge-laws.ts';
export { checkLaws } from './laws.ts';
export { entriesFromMessages } from './legacy-messages.ts';
export { looksLike, plainName } from './look-alikes.ts';
export { type AgentMessagesInput, buildAgentMessages, summaryEntry, turnStart } from './messages.ts';
export { messagesFromEntries } from './openai-messages.ts';
export * from './people.ts';
export * from './phases.ts';
export { firstCodePoints, PREVIEW_LENGTH } from './preview.ts';
export { expand, isWithin, type Ranges, rangesOf } from './ranges.ts';
export { RECALL_CHARACTERS, type RecallAnswer, type RecallRequest, recall } from './recall.ts';
export { auditedOutcomes, type Owed, planRepair } from './repair.ts';
export * from './roster.ts';
export { mentions, route, whoseTurnItIs } from './routing.ts';
export { missingForRun } from './runs.ts';
export { checkShapes } from './shape-laws.ts';
export {
  type AgentState,
  agentState,
  type Claim,
  type ConversationState,
  EMPTY_STATE,
  isStopped,
  owesSomething,
  type Run,
  type Setting,
  settingAt,
  type Turn,
  tokenRatioOf,
} from './state.ts';
export { closeStrayCalls } from './stray-calls.ts';
export { type SummaryInput, summaryText } from './summary-text.ts';
export {
  AWAY_MARKER,
  attribution,
  escapeMarkers,
  estimateTokens,
  LINE_BREAK,
  NEW_INTERACTION_MARKER,
  titleFrom,
} from './text.ts';
export * from './tool-patterns.ts';
export * from './tool-rules.ts';
export { type TranscriptInput, transcript } from './transcript.ts';
export { createTurnWatch, type TakenUp, type TurnWatch, takenUp } from './turn-watch.ts';
export { nextTrigger } from './turns.ts';
export { isModelCall, NOTHING_USED, type Used, usedTogether, usedWith } from './usage.ts';
export * from './view.ts';
export { type Difference, diffViews, type Placed } from './view-diff.ts';
export { sizeOf } from './view-groups.ts';
export type * from './view-report.ts';
export { END, nodeOf, type Workflow, type WorkflowNode, type Workflows } from './workflow.ts';
