export { type CallContext, callModel } from './calls/call.ts';
export type { LiveDelta } from './calls/live.ts';
export { callWithRetries, type RetryPolicy } from './calls/retry.ts';
export { type Prose, type Summariser, summarise } from './calls/summarise.ts';
export { type Explained, type Explanation, explain } from './explain/explain.ts';
export * from './model-port.ts';
export { type Assembled, type ModelProfile, RequestAssembler } from './requests/assemble.ts';
export {
  type Budget,
  costOf,
  overBudget,
  type Price,
  type Reservation,
  reservationFor,
} from './requests/cost.ts';
export { guard, type Window } from './requests/guard.ts';
export { type PersonaSource, type PromptTexts, prefix, runContext } from './requests/prompt.ts';
export {
  type HistoryLimits,
  needsReduction,
  nextReductionOf,
  type PlannedReduction,
  type Reducible,
  reductionEntry,
  reductionFor,
} from './requests/reduce.ts';
export { type AgentSetup, type Prepared, type RequestSources, Requests } from './requests/requests.ts';
export { PLAIN_FORM, type WireForm } from './requests/wire-form.ts';
export { isForbidden, type Ruling, type ToolAvailability } from './tool-availability.ts';
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
