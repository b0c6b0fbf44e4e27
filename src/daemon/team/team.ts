import {
  type AgentSetup,
  DIALECTS,
  type Explained,
  type FileCache,
  type Model,
  type ModelChoice,
  type ModelProfile,
  PLAIN_FORM,
  type RequestSources,
  type RetryPolicy,
  SESSION_HEADER,
  type Summariser,
  shownExplanation,
  type Toolbox,
  type WireForm,
} from '../../agents/index.ts';
import {
  type AcpConfig,
  type AgentConfig,
  type AgentParameters,
  type Config,
  type ModelConfig,
  type PublishersConfig,
  type Secret,
  workFolder,
} from '../../config/index.ts';
import {
  awayTokens,
  type ConversationRules,
  type ConversationState,
  DEFAULT_VIEW_POLICY,
  type ExplainedRequest,
  escapeMarkers,
  type FilePart,
  type HiredAgents,
  type HiringRules,
  listsTool,
  NONE_HIRED,
  policyAgentOf,
  type Roster,
  rosterOf,
  type ViewPolicy,
} from '../../conversation/index.ts';
import { asError, type NewId } from '../../kernel/index.ts';
import { availabilityOf, toolRules, underPolicy } from '../tools/tool-policy.ts';

export interface RunningAgent extends AgentSetup {
  readonly model: Model;
  /** As `AgentSetup.fallbacks`. */
  readonly fallbacks?: readonly RunningAgent[];
  /** Null: an extract without a model replaces what does not fit. */
  readonly summariser: Summariser | null;
  /** `absentMsOf` */
  readonly absentMs?: number | null;
}

/** How the daemon runs a coding agent. */
export interface CodingSettings {
  readonly command: readonly string[];
  /** Absolute. */
  readonly directory: string;
  readonly env: Readonly<Record<string, string | Secret>>;
  readonly idleSeconds: number;
}

/** The setup with the clients of its models. A fallback without one, which the configuration has lost, is left out. */
export function runningAs(
  setup: AgentSetup,
  agent: Pick<RunningAgent, 'model' | 'summariser' | 'absentMs'>,
  modelOf: (name: string) => Model | undefined,
): RunningAgent {
  const { model, summariser, absentMs } = agent;
  const fallbacks = (setup.fallbacks ?? []).flatMap((one) => {
    const other = modelOf(one.profile.name);
    return other ? [{ ...one, fallbacks: [], model: other, summariser, absentMs }] : [];
  });
  return { ...setup, model, fallbacks, summariser, absentMs };
}

/** The configured models, for requests outside turns. */
export interface ConfiguredModels {
  /** The keys of `models`. */
  readonly names: readonly string[];
  get(name: string): Model | undefined;
  /** As this agent would send its requests to it, with the parameters of the agent; null: there is no such model. */
  changedTo(name: string, agent: string): ModelChoice | null;
}

/**
 * Everything that comes from the files of agents, prompts, phases, workflows, models, tool policy, limits and approvals.
 *
 * TEAM-1 A team is immutable. A reload replaces it as a whole, so no decision sees parts of two configurations.
 * TEAM-2 Decisions use the team of their moment. The request, model, window and price of a turn come from the definition
 *        that the turn started with (DEFINITIONS-2).
 */
export interface Team {
  readonly sources: RequestSources;
  readonly rules: ConversationRules;
  readonly agents: ReadonlyMap<string, RunningAgent>;
  /** Those with `runtime: acp`. */
  readonly coding: ReadonlyMap<string, CodingSettings>;
  readonly retry: RetryPolicy;
  /** Under the tool policy. */
  readonly toolbox: Toolbox;
  /** Publishers that may answer approvals; `*`: all. Empty: only the operator. */
  readonly approvers: readonly string[];
  /** How long a call waits for an approval; null: without limit. */
  readonly approvalExpiryMs: number | null;
  /** Those that are enforced while a turn runs (L15); the others are decided by the core. */
  readonly limits: Pick<Config['limits'], 'turnSeconds' | 'tokensPerConversation' | 'usdPerConversation'>;
  /** Writes titles; null: the first words of the first message are the title. */
  readonly titler: Summariser | null;
  readonly publishers: PublishersConfig;
  readonly files: Config['blobs'] & Pick<Config['tools'], 'environment'>;
  readonly models: ConfiguredModels;
  for(state: ConversationState): Team;
}

/** How long a turn of this agent waits for its program to connect; null: it does not wait. */
export function absentMsOf({ agents, limits }: Pick<Team, 'agents' | 'limits'>, slug: string): number | null {
  const absentMs = agents.get(slug)?.absentMs ?? null;
  return absentMs && Math.min(absentMs, limits.turnSeconds * 1_000);
}

/** `hired`: of a conversation; default: the sources of a conversation without hired agents. */
export function requestSources(
  config: Config,
  toolbox: Pick<Toolbox, 'definitions'>,
  hired: HiredAgents = NONE_HIRED,
): RequestSources {
  const roster = rosterOf(config.roster, hired);
  const agents = agentsOf(config, roster).map((agent) => {
    const setup = {
      card: agent,
      persona: agent.persona,
      ...(agent.answers && { answers: agent.answers }),
      profile: profileOf(config, agent),
      viewPolicy: viewPolicyOf(config, agent),
      historyLimits: {
        maxMessages: agent.context.contextMaxMessages,
        maxChars: agent.context.contextMaxChars,
      },
    };
    return [agent.slug, { ...setup, fallbacks: fallbacksOf(config, agent, setup) }] as const;
  });
  return {
    roster,
    prompts: config.prompts,
    workflows: new Map(config.workflows.map((workflow) => [workflow.id, workflow])),
    tools: () => toolbox.definitions(),
    availability: (agent, tool) => availabilityOf(config, policyAgentOf(roster, agent), tool),
    agents: new Map(agents),
  };
}

/** An agent in another process asks its own model. */
function fallbacksOf(config: Config, agent: AgentConfig, setup: AgentSetup): AgentSetup[] {
  if (agent.runtime !== 'local') return [];
  return (modelConfigOf(config, agent)?.fallback ?? []).flatMap((name) => {
    const model = config.models[name];
    if (!model) return [];
    const profile = modelProfile(name, model, agent.parameters);
    return { ...setup, profile, viewPolicy: { ...setup.viewPolicy, ...viewOf(model) } };
  });
}

/** The configured agents and the hired ones. A hired agent has the common settings; markers in its persona are escaped (L17). */
function agentsOf(config: Config, { hired = new Map() }: Roster): readonly AgentConfig[] {
  const added = [...hired.values()].map(({ card, persona }) => ({
    ...card,
    persona: escapeMarkers(persona),
    context: config.context,
    parameters: {},
    absentMs: null,
    file: '',
  }));
  return [...config.agents, ...added];
}

export function conversationRules(
  config: Config,
  sources: RequestSources,
  toolbox: Toolbox,
  newId: NewId,
): ConversationRules {
  return {
    roster: config.roster,
    phases: config.phases,
    limits: config.limits,
    workflows: sources.workflows,
    tools: toolRules(config, toolbox),
    ownRequests: config.approvals.ownRequests,
    hiring: hiringRules(config),
    newId,
    viewPolicy: (slug) => sources.agents.get(slug)?.viewPolicy ?? DEFAULT_VIEW_POLICY,
  };
}

function hiringRules({ limits, agents, models, tools, publishers, approvals, daemon }: Config): HiringRules {
  const { tokens = [], operator = null } = daemon.http ?? {};
  const named = tokens.flatMap(({ publisher, name }) => [publisher, name ?? null]);
  const people = [...Object.keys(publishers.named), ...approvals.approvers, operator, ...named];
  return {
    depth: limits.hireDepth,
    agents: limits.hiredAgents,
    tokensPerConversation: limits.tokensPerConversation,
    usdPerConversation: limits.usdPerConversation,
    unpriced: unpricedModels(models),
    people: people.flatMap((name) => (name === null || name === '*' ? [] : name)),
    isConfigured: (tool) =>
      agents.some((agent) => listsTool(agent.tools, tool)) ||
      Object.keys(tools.mcpServers).some((server) => tool.startsWith(`mcp__${server}__`)),
  };
}

function unpricedModels(models: Config['models']): ReadonlySet<string> {
  const isPriced = (name: string) =>
    models[name]?.provider === 'scripted' || models[name]?.price !== undefined;
  const names = Object.keys(models).filter(
    (name) => ![name, ...(models[name]?.fallback ?? [])].every(isPriced),
  );
  return new Set(names);
}

interface TeamParts {
  readonly toolbox: Toolbox;
  /** By configured name. */
  readonly models: ReadonlyMap<string, Model>;
  /** The model of all agents in other processes. */
  readonly remote: Model;
  readonly newId: NewId;
}

export function createTeam(config: Config, parts: TeamParts): Team {
  const toolbox = underPolicy(config, parts.toolbox);
  const teams = new WeakMap<HiredAgents, Team>();
  const teamFor = ({ hired }: Pick<ConversationState, 'hired'>): Team => {
    const team = teams.get(hired) ?? { ...teamWith(config, parts, hired), toolbox, for: teamFor };
    teams.set(hired, team);
    return team;
  };
  return teamFor({ hired: NONE_HIRED });
}

function teamWith(
  config: Config,
  { toolbox, models, remote, newId }: TeamParts,
  hired: HiredAgents,
): Omit<Team, 'toolbox' | 'for'> {
  const sources = requestSources(config, toolbox, hired);
  const agents = new Map<string, RunningAgent>();
  for (const agent of agentsOf(config, sources.roster)) {
    const setup = sources.agents.get(agent.slug);
    const model = agent.runtime !== 'local' ? remote : models.get(agent.model);
    if (!setup || !model) continue;
    const summariser = summariserOf(config, agent, models);
    const parts = { model, absentMs: agent.absentMs, summariser };
    agents.set(
      agent.slug,
      runningAs(setup, parts, (name) => models.get(name)),
    );
  }
  return {
    sources,
    rules: conversationRules(config, sources, toolbox, newId),
    agents,
    coding: new Map(
      config.agents.flatMap(({ slug, acp }) => (acp ? [[slug, codingSettings(config, acp)]] : [])),
    ),
    retry: config.retry,
    approvers: config.approvals.approvers,
    approvalExpiryMs: config.approvals.expireAfterMs,
    limits: config.limits,
    titler: namedModel(config, config.titleModel, TITLE_MS, models),
    publishers: config.publishers,
    files: { ...config.blobs, environment: config.tools.environment },
    models: {
      names: Object.keys(config.models),
      get: (name) => models.get(name),
      changedTo: (name, agent) => changedModel(config, name, agent),
    },
  };
}

export function codingSettings({ tools }: Config, acp: AcpConfig): CodingSettings {
  const { command, env, idleSeconds } = acp;
  const directory = workFolder(tools.project, acp);
  return { command, directory, env: { ...tools.environment, ...env }, idleSeconds };
}

/** The configured model of an agent. Validation ensures that it exists. */
function modelConfigOf(config: Config, agent: AgentConfig): ModelConfig | undefined {
  return config.models[agent.model];
}

/** A request of this agent, sent to another configured model; null: there is no such model. The agent may be gone. */
function changedModel(config: Config, name: string, slug: string): ModelChoice | null {
  const model = Object.hasOwn(config.models, name) ? config.models[name] : undefined;
  const agent = config.agents.find((one) => one.slug === slug);
  return model ? { profile: modelProfile(name, model, agent?.parameters), viewPolicy: viewOf(model) } : null;
}

function viewOf({ contextTokens, profile }: ModelConfig): ModelChoice['viewPolicy'] {
  return {
    otherAgentsAs: profile.otherAgentsAs,
    awayTokens: awayTokens(contextTokens),
    includeReasoning: profile.sendReasoning !== 'never',
  };
}

function viewPolicyOf(config: Config, agent: AgentConfig): ViewPolicy {
  const model = modelConfigOf(config, agent);
  return {
    ...DEFAULT_VIEW_POLICY,
    ...(model ? { ...viewOf(model), ...(agent.runtime === 'local' ? {} : { includeReasoning: false }) } : {}),
    includeCollapsed: agent.context.includeCollapsedUiEventsInContext,
    includeToolResults: agent.context.includeToolResultsInContext,
  };
}

function profileOf(config: Config, agent: AgentConfig): ModelProfile {
  const profile = modelProfile(agent.model, modelConfigOf(config, agent), agent.parameters);
  if (agent.runtime === 'local') return profile;
  // An agent on the bus gets the plain view: it knows its own provider.
  const session = { kind: 'header', name: SESSION_HEADER, by: 'agent' } as const;
  return { ...profile, headers: {}, session, form: BY_REFERENCE, strictTools: false, structured: false };
}

const BY_REFERENCE: WireForm = { ...PLAIN_FORM, accepts: 'references' };

/** The parts of a configured model that affect its requests. */
export function modelProfile(
  name: string,
  model: ModelConfig | undefined,
  ofAgent: AgentParameters = {},
): ModelProfile {
  const { contextTokens = 0 } = model ?? {};
  const maxOutputTokens = ofAgent.maxOutputTokens ?? model?.maxOutputTokens ?? 0;
  const parameters = { ...model?.parameters, ...ofAgent };
  const headers = { ...model?.parameters.headers, ...ofAgent.headers };
  const extraBody = { ...model?.parameters.extraBody, ...ofAgent.extraBody };
  return {
    name,
    contextTokens,
    maxOutputTokens,
    fields: model
      ? {
          ...DIALECTS[model.dialect].fields({
            ...parameters,
            ...model.profile,
            model: model.model,
            maxOutputTokens,
          }),
          ...extraBody,
        }
      : {},
    headers,
    session: model?.session ? { ...model.session, by: 'daemon' } : null,
    price: model?.price ?? null,
    form: model ? formOf(model) : PLAIN_FORM,
    toolFields: model?.profile.parallelToolCalls === false ? { parallel_tool_calls: false } : {},
    strictTools: model?.profile.strictTools ?? false,
    structured: model?.profile.structured ?? false,
  };
}

/** The model that writes summaries for this agent, if one is configured. */
export function summariserOf(
  config: Config,
  agent: AgentConfig,
  models: ReadonlyMap<string, Model>,
): Summariser | null {
  const { summaryModel, summaryTimeoutMs } = agent.context;
  return namedModel(config, summaryModel, summaryTimeoutMs, models);
}

/** Time limit of a title. */
const TITLE_MS = 30_000;

function namedModel(
  config: Config,
  name: string | null,
  timeoutMs: number,
  models: ReadonlyMap<string, Model>,
): Summariser | null {
  const model = name === null ? undefined : models.get(name);
  return name === null || !model
    ? null
    : { model, profile: modelProfile(name, config.models[name]), timeoutMs };
}

function formOf(model: ModelConfig): WireForm {
  const { instructionsAs, mergeMessages, sendReasoning, callIds, emptyAnswers } = model.profile;
  const { afterResults, unsignedCalls, maxFiles } = model.profile;
  const given = { instructionsAs, mergeMessages, sendReasoning, callIds, emptyAnswers };
  const { dialect } = model;
  const accepts = model.accepts.length > 0 ? { accepts: model.accepts, maxFiles } : {};
  const form = { dialect, ...given, afterResults, unsignedCalls, ...accepts };
  if (model.provider === 'scripted') return form;
  const { cacheTtl } = model;
  return {
    ...form,
    ...(cacheTtl && { cacheTtl }),
    boundTo: `${dialect} ${new URL(model.baseURL).host} ${model.model}`,
  };
}

/** What `explain` shows: the request, and the content blocks that the program of a coding agent is told of it (ACP-PROMPT-6). */
export async function shownWithPrompt(
  { explanation }: Extract<Explained, { readonly ok: true }>,
  body: boolean | 'prompt' | undefined,
  files: FileCache,
): Promise<ExplainedRequest> {
  const shown = shownExplanation(explanation, body === true);
  const { told } = shown.report;
  if (!told?.takes) return shown;
  const { promptFor } = await import('../../acp/index.ts'); // with packages that few daemons need
  const request = {
    messages: explanation.messages,
    missed: told.messages,
    tools: shown.report.tools.map((name) => ({ function: { name } })),
  };
  const { json, sent } = await promptFor(request, told.session === 'new', told.takes, (file) =>
    contentOf(file, files),
  );
  const prompt = {
    hash: sent.hash,
    sent: told.hash === undefined ? ('unknown' as const) : told.hash === sent.hash,
  };
  const report = { ...shown.report, told: { ...told, prompt } };
  return body === 'prompt' ? { messages: [], report, body: json } : { ...shown, report };
}

async function contentOf(file: FilePart, files: FileCache): Promise<AsyncIterable<Uint8Array>> {
  const loaded = await files.load([file]);
  if ('code' in loaded) throw asError(loaded);
  const base64 = Buffer.from(loaded.get(file.sha256) ?? []).toString('latin1');
  return (async function* () {
    yield Buffer.from(base64, 'base64');
  })();
}
