/**
 * Agents: from a view to the exact request of a model, and from its answer to a command.
 *
 * model-port.ts         what a turn needs of a model; implemented in `src/models/`
 * dialect-port.ts       what a request needs of a provider's language; implemented in `src/models/<dialect>/`, and the token estimate
 * tool-port.ts          what a turn needs of tools; implemented in `src/tools/`
 * requests/             requests.ts begins: the next request of a turn; the assembler (its bytes and their hash), the guard (L13),
 *                       reduction, prompt prefix, files, cost
 * calls/                call.ts: one call with retries, who may be asked instead, and its live text; summarise.ts: the call that
 *                       writes a summary
 * definition/           what an agent's requests depend on besides the log, as texts that are stored
 * explain/              the request that led to an answer, and the report on it
 * what-if/              recorded turns, and their requests sent again with one change
 *
 * No vendor, no transport and no storage here. The bytes of a request depend on the log and the definition only (L6).
 */

export { DIALECTS } from '../models/dialects.ts';
export * from './calls/call.ts';
export * from './calls/summarise.ts';
export * from './definition/definition.ts';
export * from './dialect-port.ts';
export * from './explain/explain.ts';
export * from './model-port.ts';
export * from './requests/assemble.ts';
export * from './requests/cost.ts';
export * from './requests/files.ts';
export * from './requests/prompt.ts';
export * from './requests/reduce.ts';
export * from './requests/requests.ts';
export * from './tool-port.ts';
export * from './what-if/what-if.ts';
