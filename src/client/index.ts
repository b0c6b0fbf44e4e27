/**
 * `parleyd/client`: post, request, follow or be an agent from any program that has a NATS connection.
 *
 * connect.ts          `connect`, and the address that a daemon leaves in its data directory; client.ts: the client itself, loaded at
 *                     the first connection
 * verbs.ts            names for the requests and answers of `src/bus/contract.ts`
 * requests.ts         one request with its retries, and which errors pass
 * follow.ts           each entry of a conversation once, in order, and the live text; a log, page by page
 * ask.ts              a message with its answer: tools of the caller, typed values
 * files.ts            files in pieces: uploads that continue after a lost connection, downloads
 * agent.ts            a program as an agent: its types, its turns
 *
 * Everything exported here is public. Every failure is a `ParleyError`.
 */
export type { OfferedTool, ToolResult } from '../bus/index.ts';
export type { NatsOptions } from '../bus/nats/index.ts';
export {
  adviceOn,
  askedIn,
  askedText,
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
  type EventEntry,
  emptyAnswerFailure,
  eventText,
  FEEDBACK,
  type FeedbackValue,
  type FilePart,
  fileLine,
  filesOf,
  finishNotice,
  type Hunk,
  type LiveChunk,
  type MessageEntry,
  MODES,
  type Mode,
  type ModelFailure,
  modeSchema,
  NAME_PATTERN,
  type PartDifference,
  type PlacedMessage,
  revertibleStop,
  SLUG_PATTERN,
  showBytes,
  splitMessage,
  type TurnOutcome,
  type TurnRow,
  type TurnWatch,
  teamChangeText,
  traitsOf,
  turnsCsv,
  type Used,
  unknownMentionsText,
  type ViewReport,
} from '../conversation/index.ts';
export { ParleyError, urlWithoutSecrets } from '../kernel/index.ts';
export type {
  AgentAnswer,
  AgentHandler,
  AgentToolCall,
  AgentTurn,
  RunningAgent,
} from './agent.ts';
export type { Answer, AskOptions, CallersTool, CallOfTool, Question, Shape, ValueOf } from './ask.ts';
export type { ClientOptions, ParleyClient } from './client.ts';
export {
  type ConnectionFile,
  connect,
  connectionFilePath,
  readConnectionFile,
  removeConnectionFile,
  type TokenOwner,
  writeConnectionFile,
} from './connect.ts';
export type { DownloadOptions, FileContent, UploadOptions } from './files.ts';
export type { FollowEvent, FollowOptions } from './follow.ts';
export { logEntries, logLength, postAndFollow } from './follow.ts';
export type { RequestPolicy } from './requests.ts';
export { isUnreachable } from './requests.ts';
export type * from './verbs.ts';
