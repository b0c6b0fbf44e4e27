export { Conversation, type ConversationRules, viewOf } from './conversation.ts';
export { type PendingApproval, pendingApprovals } from './decide/approvals.ts';
export * from './decide/command.ts';
export { decide } from './decide/decide.ts';
export type { DecideContext, Limits } from './decide/decision-builder.ts';
export { auditedOutcomes, type Owed, planRepair } from './decide/repair.ts';
export { mentions, route, whoseTurnItIs } from './decide/routing.ts';
export { missingForRun } from './decide/runs.ts';
export { nextTrigger } from './decide/turns.ts';
export { entriesFromMessages } from './exchange/legacy-messages.ts';
export { closeStrayCalls, messagesFromEntries } from './exchange/openai-messages.ts';
export { type AuditedCall, checkAudit } from './laws/audit-laws.ts';
export { checkKnowledge } from './laws/knowledge-laws.ts';
export { checkLaws, checkShapes } from './laws/laws.ts';
export * from './log/entry.ts';
export {
  adviceOn,
  type Cut,
  cutBy,
  emptyAnswerFailure,
  finishNotice,
  finishReasonOf,
} from './log/finish-reason.ts';
export { FollowedLog, type LogPage, type LogRead, READ_AGAIN_MS } from './log/followed-log.ts';
export { expand, isWithin, type Ranges, rangesOf } from './log/ranges.ts';
export { type AgentMessagesInput, buildAgentMessages, summaryEntry, turnStart } from './messages.ts';
export { createTurnWatch, type TakenUp, type TurnWatch, takenUp } from './progress/turn-watch.ts';
export { RECALL_CHARACTERS, type RecallAnswer, type RecallRequest, recall } from './recall/recall.ts';
export { planNextReduction, planReduction } from './reduction/compaction.ts';
export type { ReductionInput, ReductionPlan, ViewLimits } from './reduction/cut.ts';
export { type SummaryInput, summaryText } from './reduction/summary-text.ts';
export { type TranscriptInput, transcript } from './reduction/transcript.ts';
export { sizeOf } from './reduction/view-groups.ts';
export { awayTokens, hardLimit, type Limit, NO_LIMIT, windowLimit } from './state/budget.ts';
export { evolve } from './state/evolve.ts';
export { Knowledge, type KnowledgePolicy, routedTo, wireCallId } from './state/knowledge.ts';
export * from './state/people.ts';
export * from './state/roster.ts';
export { END, nodeOf, type Workflow, type WorkflowNode, type Workflows } from './state/roster.ts';
export * from './state/state.ts';
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
} from './state/state.ts';
export { isModelCall, NOTHING_USED, type Used, usedTogether, usedWith } from './state/usage.ts';
export { looksLike, plainName } from './text/look-alikes.ts';
export {
  AWAY_MARKER,
  attribution,
  escapeMarkers,
  estimateTokens,
  firstCodePoints,
  LINE_BREAK,
  NEW_INTERACTION_MARKER,
  PREVIEW_LENGTH,
  titleFrom,
} from './text/text.ts';
export {
  argumentsSchema,
  availableTools,
  CONVERSATION_TOOLS,
  isConversationTool,
  toolError,
} from './tools/conversation-tools.ts';
export * from './tools/tool-patterns.ts';
export * from './tools/tool-rules.ts';
export * from './view/view.ts';
export { type Difference, diffViews, type Placed } from './view/view-diff.ts';
export type * from './view/view-report.ts';
