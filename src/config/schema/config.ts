import type { AgentCard, PhaseTable, Roster, Workflow } from '../../conversation/index.ts';
import type { ArmedPoints } from './crash-points.ts';
import type { PublishersConfig } from './http-file.ts';
import type { ModelProfileConfig } from './profiles.ts';
import type { ContextConfig, LimitsConfig, RemoteAgentsConfig, RetryConfig } from './schema.ts';
import type { Secret } from './secret.ts';
import type { DaemonSettings } from './settings.ts';

/** What a loaded configuration holds: every default resolved, every path absolute, frozen. */

export interface PriceConfig {
  readonly inputPerMillion: number;
  readonly cachedInputPerMillion: number;
  readonly outputPerMillion: number;
}

/** As a header of the request, or as a field at the top of its body. */
export interface SessionSetting {
  readonly kind: 'header' | 'field';
  readonly name: string;
}

interface AnyModelConfig {
  /** The name at the provider. */
  readonly model: string;
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  /** What its provider differs in. */
  readonly profile: ModelProfileConfig;
  readonly price?: PriceConfig;
  /** How the agent's session is sent; null: it is not. */
  readonly session: SessionSetting | null;
}

export interface OpenaiModelConfig extends AnyModelConfig {
  readonly provider: 'openai';
  /** Without a slash at its end. */
  readonly baseURL: string;
  /** null: the endpoint wants none. */
  readonly apiKey: Secret | null;
}

export interface ScriptedModelConfig extends AnyModelConfig {
  readonly provider: 'scripted';
  /** Absolute path of a file that exists; null: the built-in script. */
  readonly script: string | null;
}

export type ModelConfig = OpenaiModelConfig | ScriptedModelConfig;

export interface AgentConfig extends AgentCard {
  /** A key of `Config.models`. */
  readonly model: string;
  /** Markdown, trimmed. */
  readonly persona: string;
  /** The configuration's, with what the agent's own file overrides. */
  readonly context: ContextConfig;
  readonly file: string;
}

export type McpServerConfig = {
  /** True: its word that a tool only reads is believed. */
  readonly trustReadOnlyHint?: boolean;
} & (
  | {
      readonly transport: 'command';
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, Secret>>;
    }
  | {
      readonly transport: 'http';
      readonly url: string;
      readonly headers: Readonly<Record<string, Secret>>;
    }
);

export interface PolicyRule {
  /** Absent: every agent. */
  readonly agent?: string;
  readonly tool: string;
  /** By argument: the source of a regular expression (flag `u`). */
  readonly match?: Readonly<Record<string, string>>;
  readonly allow: boolean;
}

export interface ToolsConfig {
  /** Absolute path of a folder that exists. */
  readonly project: string;
  /** What commands and MCP servers get of the daemon's environment. Holds no secret. */
  readonly environment: Readonly<Record<string, string>>;
  readonly mcpServers: Readonly<Record<string, McpServerConfig>>;
  readonly risk: Readonly<Record<string, 'safe' | 'risky'>>;
  readonly policy: readonly PolicyRule[];
  /** Names of files and folders that are always risky to write, besides those that always are. */
  readonly protected: readonly string[];
}

export interface PromptTexts {
  /** Base rules of the modes chat and agent. */
  readonly baseChat: string;
  /** Base rules of the mode run. */
  readonly baseRun: string;
  readonly toolPolicy: string;
}

interface ApprovalsConfig {
  /** Publishers; `*`: each. Empty: the operator alone. */
  readonly approvers: readonly string[];
  /** A publisher may approve a call that answers its own request. */
  readonly ownRequests: boolean;
  readonly expireAfterMs: number | null;
}

export interface RetentionConfig {
  readonly conversations: number | null;
  readonly deadLetters: number | null;
}

export interface Config {
  /** Absolute. */
  readonly directory: string;
  readonly defaultAgent: string;
  readonly subjectPrefix: string;
  readonly models: Readonly<Record<string, ModelConfig>>;
  /** In slug order. */
  readonly agents: readonly AgentConfig[];
  readonly roster: Roster;
  readonly phases: PhaseTable;
  readonly context: ContextConfig;
  readonly limits: LimitsConfig;
  readonly retry: RetryConfig;
  readonly tools: ToolsConfig;
  readonly approvals: ApprovalsConfig;
  readonly publishers: PublishersConfig;
  /** Posts that wait, together. */
  readonly ingress: { readonly maxBytes: number };
  /** Milliseconds; null: nothing is deleted by its age. */
  readonly retention: RetentionConfig;
  readonly shutdown: { readonly graceMs: number };
  /** Of daemons whose logs are shared. */
  readonly sharing: { readonly silenceMs: number };
  /** Of each stream and bucket, in a cluster; null: as they are, 1 for new ones. */
  readonly replicas: number | null;
  /** For agents with `runtime: bus`. */
  readonly remoteAgents: RemoteAgentsConfig;
  readonly prompts: PromptTexts;
  /** By id, in order. Their agents, nodes and tools exist, and each can end. */
  readonly workflows: readonly Workflow[];
  readonly daemon: DaemonSettings;
  readonly telemetry: 'console' | 'off';
  /** Where a daemon under test ends itself; null, but for tests. */
  readonly crashPoints: ArmedPoints;
  /** While this file is there, the store plays a full disk; null, but for tests. */
  readonly fullDisk: string | null;
  /** False, for tests only: an append to a shared log does not say where it belongs. */
  readonly isFenced: boolean;
  /** What a person should know though nothing is wrong: the offline model, a variable that is not known. */
  readonly notices: readonly string[];
}
