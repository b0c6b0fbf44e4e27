export { type Assembled, type ModelProfile, RequestAssembler } from './assemble.ts';
export { type CallContext, callModel } from './call.ts';
export { type Budget, costOf, overBudget, type Price, type Reservation, reservationFor } from './cost.ts';
export { type Explained, type Explanation, explain } from './explain.ts';
export { guard, type Window } from './guard.ts';
export type { LiveDelta } from './live.ts';
export * from './model-port.ts';
export { type PersonaSource, type PromptTexts, prefix, runContext } from './prompt.ts';
export {
  type HistoryLimits,
  needsReduction,
  nextReductionOf,
  type PlannedReduction,
  type Reducible,
  reductionEntry,
  reductionFor,
} from './reduce.ts';
export { type AgentSetup, type Prepared, type RequestSources, Requests } from './requests.ts';
export { callWithRetries, type RetryPolicy } from './retry.ts';
export { type Prose, type Summariser, summarise } from './summarise.ts';
export type {
  Located,
  Place,
  Risk as ToolRisk,
  Subject,
  Toolbox,
  ToolDefinition,
  ToolOutcome,
  ToolRun,
  ToolServer,
} from './tool-port.ts';
export { isForbidden, type Ruling, type ToolStanding } from './tool-standing.ts';
export { PLAIN_FORM, type WireForm } from './wire-form.ts';
