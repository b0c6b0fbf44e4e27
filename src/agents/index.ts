/**
 * Agents: from a view to the exact request of a model, and from its answer to a command.
 *
 * model-port.ts         what a turn needs of a model; implemented in `src/models/`
 * tool-port.ts          what a turn needs of tools; implemented in `src/tools/`
 * tool-availability.ts  which tools an agent may call: one value for the prompt and for the enforcement
 * requests/             the assembler (its bytes and their hash), the guard (L13), reduction, prompt prefix, token
 *                       estimate, cost, and the encoding for each provider (wire-form.ts)
 * calls/                one call with retries and live text, and the call that writes a summary
 * definition/           what an agent's requests depend on besides the log, as texts that are stored
 * explain/              the request that led to an answer, and the report on it
 * what-if/              recorded turns, and their requests sent again with one change
 *
 * No vendor, no transport and no storage here. The bytes of a request depend on the log and the definition only (L6).
 */

export type { Retry, RetryPolicy } from './calls/call.ts';
export { type CallContext, callModel } from './calls/call.ts';
export { type LiveDelta, LiveText } from './calls/live-text.ts';
export { type Prose, type Summariser, summarise } from './calls/summarise.ts';
export {
  type Definition,
  definitionOf,
  hashOf,
  partHashes,
  readDefinition,
  sourcesOf,
  textsOf,
} from './definition/definition.ts';
export { definitionAt, type Explanation, explain, explainStored } from './explain/explain.ts';
export * from './model-port.ts';
export { type Assembled, type ModelProfile, RequestAssembler, shownParameters } from './requests/assemble.ts';
export {
  type Budget,
  overBudget,
  type Reservation,
  reservationFor,
} from './requests/cost.ts';
export { guard, type Window } from './requests/guard.ts';
export { prefix, runContext } from './requests/prompt.ts';
export {
  type HistoryLimits,
  type PlannedReduction,
  reductionEntry,
  reductionFor,
} from './requests/reduce.ts';
export {
  type AgentSetup,
  type Prepared,
  type RequestSources,
  Requests,
} from './requests/requests.ts';
export { PLAIN_FORM, type WireForm } from './requests/wire-form.ts';
export { isForbidden, type Ruling, type ToolAvailability } from './tool-availability.ts';
export type {
  ResolvedPath,
  Risk as ToolRisk,
  Subject,
  Toolbox,
  ToolDefinition,
  ToolOutcome,
  ToolRun,
} from './tool-port.ts';

export {
  type Change,
  type ChangedModel,
  changed,
  createReplay,
  fromAnswer,
  type RecordedTurn,
  type Run,
  recordedTurns,
  turnAt,
  type Variant,
} from './what-if/what-if.ts';
