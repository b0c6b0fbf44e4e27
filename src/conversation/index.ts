/**
 * The core: pure functions of a conversation's log. No clock, randomness, I/O or globals; imports only `kernel`, zod, jsdiff and shell-quote.
 *
 * conversation.ts   one log in memory with its folds; the decision on a command; the messages of a request, for libraries
 * log/         entries: types, traits of each type
 * state/       the fold: state of the conversation, who answers by it, knowledge of each agent, rosters, people, usage, budgets
 * decide/      commands to entries and effects: posts (posting.ts alone selects who answers a person), turns, calls,
 *              approvals, runs, hiring, forks, changes of the team, claims, recovery, restored logs
 * tools/       the tools that act on the conversation; the port to the rules for other tools; their schemas and shell commands in one form
 * view/        what an agent is shown, as messages; reports, differences of requests and definitions
 * reduction/   what is taken out of a view that is too large, and the text of summaries
 * recall/      reading and searching a log as one agent may see it
 * laws/        an independent checker of logs; it may use `state` and `decide`, no other folder here uses it
 * exchange/    import from and export to arrays of messages
 * progress/    what follows a post, for readers: open turns and calls, live text, steps (progress.ts) that each protocol renders
 * text/        markers, escaping, look-alike characters, token estimates, differences of lines, first lines
 */
export * from './conversation.ts';
export { type PendingApproval, pendingApprovals, unknownApproval } from './decide/approvals.ts';
export { awaitedCalls } from './decide/caller-results.ts';
export * from './decide/command.ts';
export type { HiringRules } from './decide/decision-builder.ts';
export { importedLog, withOwnApprovals } from './decide/fork.ts';
export type { HireRequest } from './decide/hiring.ts';
export { route } from './decide/posting.ts';
export * from './decide/repair.ts';
export {
  conditionText,
  filledBrief,
  missingForRun,
  pathFault,
  REFERENCE,
  schemaOfNode,
} from './decide/runs.ts';
export * from './exchange/export.ts';
export { entriesFromMessages, quotedHistory } from './exchange/legacy-messages.ts';
export * from './exchange/openai-parts.ts';
export { checkAudit, checkKnowledge, checkLaws, checkShapes } from './laws/laws.ts';
export * from './log/answer.ts';
export { conversationOfApproval } from './log/call-id.ts';
export * from './log/client-tools.ts';
export * from './log/entry.ts';
export { ENTRY_TRAITS, routedTo, traitsOf } from './log/entry-traits.ts';
export { feedbackIn } from './log/feedback.ts';
export { adviceOn, cutBy, emptyAnswerFailure, finishNotice, finishReasonOf } from './log/finish-reason.ts';
export * from './log/model-failure.ts';
export * from './log/parts.ts';
export { expand, isWithin, type Ranges } from './log/ranges.ts';
export { askedText } from './log/server-asks.ts';
export * from './log/words.ts';
export * from './progress/live-text.ts';
export { askedIn, type CallersCall, type OpenCall, OpenCalls, questionText } from './progress/open-calls.ts';
export * from './progress/progress.ts';
export { type RunSoFar, runPath, runsWith } from './progress/runs.ts';
export * from './progress/turn-watch.ts';
export * from './recall/recall.ts';
export * from './reduction/compaction.ts';
export type { ReductionInput, ReductionPlan, ViewLimits } from './reduction/reduction-builder.ts';
export { sizeOf } from './reduction/reduction-builder.ts';
export { type SummaryInput, summaryText, transcript } from './reduction/summary-text.ts';
export { agentNamed, mentions, unknownMentionsText } from './state/answering.ts';
export { awayTokens, hardLimit, NO_LIMIT, windowLimit } from './state/budget.ts';
export { evolve } from './state/evolve.ts';
export { accountsOf } from './state/hired.ts';
export { Knowledge } from './state/knowledge.ts';
export * from './state/people.ts';
export * from './state/roster.ts';
export * from './state/state.ts';
export * from './state/turn-rows.ts';
export {
  addedUp,
  firstOfDays,
  NOTHING_USED,
  SPENT_DAYS,
  type Spent,
  spentTogether,
  type Used,
  usedTogether,
  usedWith,
} from './state/usage.ts';
export { nextTrigger } from './state/waiting.ts';
export { type DiffLine, differenceText, diffLines, type Hunk } from './text/line-diff.ts';
export { isPersonName, looksLike, plainName } from './text/look-alikes.ts';
export {
  AWAY_MARKER,
  attribution,
  escapeMarkers,
  escapeTokens,
  estimateTokens,
  firstCodePoints,
  LINE_BREAK,
  NEW_INTERACTION_MARKER,
  PREVIEW_LENGTH,
  plainLine,
  quotedLines,
  shortLine,
} from './text/text.ts';
export * from './tools/conversation-tools.ts';
export * from './tools/shell-command.ts';
export * from './tools/tool-rules.ts';
export * from './tools/wire-parameters.ts';
export * from './view/view.ts';
export * from './view/view-diff.ts';
export type * from './view/view-report.ts';
