/**
 * `parleyd/client`: post, request, follow or be an agent from any program that has a NATS connection.
 *
 * client.ts           `connect`, and the client itself
 * verbs.ts            names for the requests and answers of `src/bus/contract.ts`
 * requests.ts         one request with its retries
 * follow.ts           each entry of a conversation once, in order, and the live text
 * agent.ts            a program as an agent; agent-turn.ts: its types; offered-turn.ts: one turn
 * connection-file.ts  the address that a daemon leaves in its data directory
 *
 * Everything exported here is public. Every failure is a `ParleyError`.
 */
export type { LiveChunk, OfferedTool, ToolResult } from '../bus/index.ts';
export { type NatsOptions, urlWithoutSecrets } from '../bus/nats/index.ts';
export {
  adviceOn,
  createTurnWatch,
  cutBy,
  type DeliveryMode,
  type Difference,
  type DiffLine,
  diffDefinitions,
  diffLines,
  diffViews,
  type Entry,
  type EntryOf,
  emptyAnswerFailure,
  finishNotice,
  type Hunk,
  type MessageEntry,
  type Mode,
  type ModelFailure,
  modeSchema,
  NAME_PATTERN,
  type PartDifference,
  type PlacedMessage,
  SLUG_PATTERN,
  splitMessage,
  type TurnOutcome,
  type TurnWatch,
  teamChangeText,
  traitsOf,
  type Used,
  type ViewReport,
} from '../conversation/index.ts';
export { ParleyError } from '../kernel/index.ts';
export type {
  AgentAnswer,
  AgentHandler,
  AgentToolCall,
  AgentTurn,
  RunningAgent,
} from './agent-turn.ts';
export { type ClientOptions, connect, type ParleyClient, type PostOptions } from './client.ts';
export {
  type ConnectionFile,
  connectionFilePath,
  readConnectionFile,
  removeConnectionFile,
  writeConnectionFile,
} from './connection-file.ts';
export { type FollowEvent, type FollowOptions, isUnreachable } from './follow.ts';
export type { RequestPolicy } from './requests.ts';
export type * from './verbs.ts';
