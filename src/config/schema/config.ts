import { resolve } from 'node:path';
import type { AgentCard, PhaseTable, Roster, Workflow } from '../../conversation/index.ts';
import type { JsonRecord } from '../../kernel/index.ts';
import type { EnvironmentFile } from '../files/dotenv.ts';
import type { PublishersConfig } from './http-file.ts';
import type { ModelFile, PROVIDERS } from './model-file.ts';
import type { AgentParameterKeys, ParameterKeys } from './parameters.ts';
import type { ModelProfileConfig } from './profiles.ts';
import type { ConfigFile, ContextConfig, RemoteAgentsConfig } from './schema.ts';
import type { Secret } from './secret.ts';
import type { DaemonSettings, TracesConfig } from './settings.ts';
import type { McpServerFile } from './tools-file.ts';

/** A loaded configuration: every default resolved, every path absolute, frozen. */

/** US dollars per million tokens. */
interface TokenPrices {
  readonly inputPerMillion: number;
  readonly cachedInputPerMillion: number;
  readonly cacheWritePerMillion: number;
  readonly outputPerMillion: number;
}

export interface PriceConfig extends TokenPrices {
  /** Known models have it: the prices of requests with more input tokens, ascending. */
  readonly above?: readonly (TokenPrices & { readonly inputTokens: number })[];
}

/** A header of the request, or a top-level field of its body. */
export interface SessionSetting {
  readonly kind: 'header' | 'field';
  readonly name: string;
}

/** Parameters of requests; each header's value may be a secret (PARAMETERS-2). */
export type RequestParameters = Omit<ParameterKeys, 'headers'> & {
  readonly headers?: Readonly<Record<string, Secret>>;
};

/** Override those of the agent's model. */
export type AgentParameters = RequestParameters & Pick<AgentParameterKeys, 'maxOutputTokens'>;

interface AnyModelConfig {
  /** The protocol of its requests. */
  readonly dialect: (typeof PROVIDERS)[keyof typeof PROVIDERS]['dialect'];
  /** The name at the provider. */
  readonly model: string;
  readonly contextTokens: number;
  /** Kinds of files that it takes. */
  readonly accepts: NonNullable<ModelFile['accepts']>;
  readonly maxOutputTokens: number;
  readonly parameters: RequestParameters;
  /** Settings for its provider. */
  readonly profile: ModelProfileConfig;
  readonly price?: PriceConfig;
  /** How the agent's session is sent; null: not sent. */
  readonly session: SessionSetting | null;
  /** Keys of `Config.models`: asked in this order when it cannot answer. */
  readonly fallback: readonly string[];
}

interface HttpModelConfig extends AnyModelConfig {
  readonly provider: keyof typeof PROVIDERS;
  /** Without a trailing slash. */
  readonly baseURL: string;
  /** In order. Empty: the endpoint needs no key. */
  readonly apiKeys: readonly Secret[];
  /** Until the first part of an answer; null: no limit but that of the turn. Milliseconds. */
  readonly firstTokenMs: number | null;
  /** Between two parts of an answer. */
  readonly idleMs: number;
  /** How long its provider keeps what it caches; absent: it is not asked to. */
  readonly cacheTtl?: '5m' | '1h';
}

interface ScriptedModelConfig extends AnyModelConfig {
  readonly provider: 'scripted';
  /** Absolute path of a file that exists; null: the built-in script. */
  readonly script: string | null;
}

export type ModelConfig = HttpModelConfig | ScriptedModelConfig;

/** The folder that `cwd` of a coding agent names. */
export function workFolder(project: string, { cwd }: AcpConfig): string {
  return resolve(project, cwd.replace(/^@project\/?/, ''));
}

/** How the daemon runs a coding agent. */
export interface AcpConfig {
  readonly command: readonly string[];
  /** `@project` and the way from there. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, Secret>>;
  readonly idleSeconds: number;
}

export interface AgentConfig extends AgentCard {
  /** A key of `Config.models`. */
  readonly model: string;
  /** Markdown, trimmed. */
  readonly persona: string;
  /** The JSON Schema of its answers. */
  readonly answers?: JsonRecord;
  /** The common settings, with the overrides of the agent's file. */
  readonly context: ContextConfig;
  readonly parameters: AgentParameters;
  /** How long a turn waits for the program of this agent to connect; null: it fails at once. */
  readonly absentMs: number | null;
  /** With `runtime: acp`. */
  readonly acp?: AcpConfig;
  readonly file: string;
}

export type McpServerConfig = {
  /** True: a tool that the server marks as read-only is safe. */
  readonly trustReadOnlyHint?: boolean;
} & (
  | {
      readonly transport: 'command';
      readonly command: string;
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, Secret>>;
      /** As `ToolsConfig.unhidden`, for this program. */
      readonly unhidden: boolean;
    }
  | {
      readonly transport: 'http';
      readonly url: string;
      readonly headers: Readonly<Record<string, Secret>>;
      readonly oauth?: OAuthConfig;
    }
);

type OAuthConfig = Readonly<Omit<NonNullable<McpServerFile['oauth']>, 'clientSecret'>> & {
  readonly clientSecret?: Secret;
};

export interface ToolsConfig
  extends Readonly<Pick<ConfigFile['tools'], 'risk' | 'policy' | 'unhidden' | 'protected'>> {
  /** Absolute path of a folder that exists. */
  readonly project: string;
  readonly loginKey?: Secret;
  /** The part of the daemon's environment that commands and MCP servers get. Contains no secret. */
  readonly environment: Readonly<Record<string, string>>;
  readonly mcpServers: Readonly<Record<string, McpServerConfig>>;
  /** `tools/*.ts` of the configuration's folder: the absolute path of each, by the name of its tool. */
  readonly files: Readonly<Record<string, string>>;
  /** The digest of all files in that folder, those that the tools import included. */
  readonly filesDigest: string;
}

export interface PromptTexts {
  /** Base rules of the modes chat and agent. */
  readonly baseChat: string;
  /** Base rules of the mode run. */
  readonly baseRun: string;
  readonly toolPolicy: string;
}

interface ApprovalsConfig {
  /** Publishers; `*`: every publisher. Empty: only the operator. */
  readonly approvers: readonly string[];
  /** A publisher may approve a call that answers its own request. */
  readonly ownRequests: boolean;
  readonly expireAfterMs: number | null;
}

export interface RetentionConfig {
  readonly conversations: number | null;
  readonly deadLetters: number | null;
}

export interface Config
  extends Readonly<
    Pick<
      ConfigFile,
      | 'subjectPrefix'
      | 'titleModel'
      | 'context'
      | 'limits'
      | 'retry'
      | 'ingress'
      | 'blobs'
      | 'shutdown'
      | 'sharing'
    >
  > {
  /** Absolute. */
  readonly directory: string;
  readonly defaultAgent: string;
  readonly models: Readonly<Record<string, ModelConfig>>;
  /** Digests of the scripts of the models, by path: a reload names an edited one. */
  readonly scripts: Readonly<Record<string, string>>;
  /** In slug order. */
  readonly agents: readonly AgentConfig[];
  readonly roster: Roster;
  readonly phases: PhaseTable;
  readonly tools: ToolsConfig;
  readonly approvals: ApprovalsConfig;
  readonly publishers: PublishersConfig;
  /** Milliseconds; null: nothing is deleted because of its age. */
  readonly retention: RetentionConfig;
  /** The replicas of each stream and bucket in a cluster; null: existing ones are unchanged, new ones get 1. */
  readonly replicas: number | null;
  /** For agents with `runtime: bus`. */
  readonly remoteAgents: RemoteAgentsConfig;
  readonly prompts: PromptTexts;
  /** Ordered by id. Their agents, nodes and tools exist, and each can end. */
  readonly workflows: readonly Workflow[];
  readonly daemon: DaemonSettings;
  readonly telemetry: 'console' | 'off';
  /** Null: no traces are exported. */
  readonly traces: TracesConfig | null;
  /** The `.env` files, with the names of the variables in use. */
  readonly environmentFiles: readonly EnvironmentFile[];
  /** Absolute paths of files that secrets are read from, also if they do not exist: closed to the tools for files. */
  readonly secretFiles: readonly string[];
  /** Values of the variables that `parley.yaml` names, without those that every tool gets. */
  readonly variables: readonly Secret[];
  /** Hints that are not errors: the offline model, an unknown variable. */
  readonly notices: readonly string[];
}
