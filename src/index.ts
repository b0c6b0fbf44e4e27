/** `parleyd`: the daemon and the pure core, for programs. To talk to a running daemon import `parleyd/client`. */

export type { Model, ModelOutcome, ModelRequest } from './agents/index.ts';
export { type Config, type LoadOptions, loadConfig } from './config/index.ts';
export {
  type AgentMessagesInput,
  type Author,
  buildAgentMessages,
  type Conversation,
  type Entry,
  type EntryOf,
  type EntryType,
  entrySchema,
  type MessageEntry,
  type OutstandingWork,
  planRepair,
  type ViewMessage,
  type ViewPolicy,
} from './conversation/index.ts';
export {
  createDaemon,
  type Daemon,
  type DaemonOptions,
  type Readiness,
  type TelemetryEvent,
  type TelemetrySink,
} from './daemon/index.ts';
export { ParleyError } from './kernel/index.ts';
export type { FunctionReply, FunctionRequest, ModelFunction } from './models/index.ts';
export type { ConversationStore } from './persistence/index.ts';
export { type InProcessTool, type ToolCall, type ToolSpec, tool } from './tools/index.ts';
