import {
  AgentView,
  AWAITED_TOOLS,
  agentState,
  argumentsSchema,
  askedSchema,
  availableTools,
  CONVERSATION_TOOLS,
  type Conversation,
  type ConversationState,
  type Entry,
  escapeTokens,
  expandTools,
  isConversationTool,
  Knowledge,
  type MessageEntry,
  offeredBy,
  PERMITS,
  permissionIn,
  type Roster,
  type Session,
  type Setting,
  settingAt,
  type Turn,
  tokenRatioOf,
  type View,
  type ViewPolicy,
  type Workflows,
  wireParameters,
} from '../../conversation/index.ts';
import type { JsonRecord } from '../../kernel/index.ts';
import type { CallChoice, WirePart } from '../dialect-port.ts';
import type { WireTool } from '../model-port.ts';
import type { ToolDefinition } from '../tool-port.ts';
import {
  type Assembled,
  type Draft,
  type ModelProfile,
  RequestAssembler,
  type RequestParts,
  sealed,
} from './assemble.ts';
import { FileCache, NO_FILES } from './files.ts';
import {
  ALWAYS_RUNS,
  describeTools,
  isForbidden,
  type PersonaSource,
  type PromptTexts,
  prefix,
  runContext,
  type ToolAvailability,
} from './prompt.ts';
import { type HistoryLimits, type PlannedReduction, type Reducible, reductionFor } from './reduce.ts';

/** An agent as the daemon runs it. */
export interface AgentSetup extends PersonaSource {
  readonly profile: ModelProfile;
  readonly viewPolicy: ViewPolicy;
  readonly historyLimits: HistoryLimits;
  /** The same agent with each fallback of its model, in order; absent: none. */
  readonly fallbacks?: readonly AgentSetup[];
}

/** What is different with another model. */
export interface ModelChoice {
  readonly profile: ModelProfile;
  readonly viewPolicy: Pick<ViewPolicy, 'otherAgentsAs' | 'includeReasoning' | 'awayTokens'>;
}

export function withModel(setup: AgentSetup, { profile, viewPolicy }: ModelChoice): AgentSetup {
  const awayTokens = Math.min(setup.viewPolicy.awayTokens, viewPolicy.awayTokens);
  return { ...setup, profile, viewPolicy: { ...setup.viewPolicy, ...viewPolicy, awayTokens } };
}

interface Choosing<Setup> {
  readonly profile: Pick<ModelProfile, 'name'>;
  readonly fallbacks?: readonly Setup[];
}

/** The agent with the model that its turn asks now; with its own, if its definition has no such fallback. */
export function setupFor<Setup extends Choosing<Setup>>(
  setup: Setup,
  turn: Pick<Turn, 'candidate'> | null,
): Setup {
  const { model } = turn?.candidate ?? {};
  return setup.fallbacks?.find(({ profile }) => profile.name === model) ?? setup;
}

/** The schema of the answer of a turn (TYPED-1); null: any text. */
export function schemaFor(
  { answers }: Pick<AgentSetup, 'answers'>,
  entries: readonly Entry[],
  turn: Pick<Turn, 'trigger'> | null,
): JsonRecord | null {
  return askedSchema(entries, turn?.trigger ?? []) ?? answers ?? null;
}

/** A request, and the reduction that must be made before it is sent; null: none. The content of files is not read for a reduction. */
export interface NextRequest extends Assembled {
  readonly reduction: PlannedReduction | null;
}

interface NextDraft extends Pick<NextRequest, 'reduction'> {
  readonly draft: Draft;
}

/** The inputs of a request besides the log; the same for all conversations. */
export interface RequestSources {
  readonly roster: Roster;
  readonly prompts: PromptTexts;
  readonly workflows: Workflows;
  /** What the toolbox offers now. */
  tools(): ReadonlyMap<string, ToolDefinition>;
  /** Whether calls of a tool run, ask or are forbidden for this agent. */
  availability(agent: string, tool: ToolDefinition): ToolAvailability;
  readonly agents: ReadonlyMap<string, AgentSetup>;
}

/** The sources of the requests of one agent's turn: those of the definition that the turn started with. */
export type SourcesOfTurn = (log: Conversation, turn: Turn) => RequestSources;

/** Makes the requests of one conversation, one after the other. Reuses each agent's bytes from one request to the next. */
export class Requests {
  readonly #sourcesOf: SourcesOfTurn;
  readonly #files: FileCache;
  readonly #conversation: string;
  readonly #assemblers = new Map<string, RequestAssembler>();

  constructor(conversation: string, sourcesOf: SourcesOfTurn, files: FileCache = NO_STORE) {
    this.#conversation = conversation;
    this.#sourcesOf = sourcesOf;
    this.#files = files;
  }

  /** The next request of an agent's running turn. The same log gives the same request (L6). */
  async next(log: Conversation, agent: string, turnId: string): Promise<NextRequest | null> {
    const next = this.draft(log, agent, turnId);
    if (next === null) return null;
    const { draft, reduction } = next;
    const contents = reduction ? NO_FILES : await this.#files.load(draft.files);
    return { ...sealed(draft, contents), reduction };
  }

  /** The same without its files. `refused`: what a provider's refusal says more precisely than the log. */
  draft(log: Conversation, agent: string, turnId: string, refused: Refused = {}): NextDraft | null {
    const turn = log.state.agents[agent]?.turn;
    if (turn?.turnId !== turnId) return null;
    const sources = this.#sourcesOf(log, turn);
    const own = sources.agents.get(agent);
    if (!own) return null;
    const setup = setupFor(own, turn);
    const assembler = this.#assemblers.get(agent) ?? new RequestAssembler();
    this.#assemblers.set(agent, assembler);
    const agentView = log.view(agent, setup.viewPolicy);
    const made = requestOf(log, this.#conversation, { sources, setup, agentView, assembler, ...refused });
    return { draft: made.draft, reduction: reductionFor(made.reducible) };
  }
}

/** Without a store every file is missing. */
const NO_STORE = new FileCache(async () => null);

/** `from`: the entry that named it; none if the daemon made it. */
export type RequestSession =
  | Session
  | { readonly id: string; readonly by: 'daemon'; readonly from?: undefined };

interface Call {
  readonly conversation: string;
  readonly first: Entry | undefined;
  readonly setting: Setting;
  readonly turnId: string;
  readonly session: Session | null;
  readonly tokenRatio: number;
  readonly schema: JsonRecord | null;
  readonly brought: Brought | null;
}

function requestParts(sources: RequestSources, setup: AgentSetup, view: View, call: Call): RequestParts {
  const { mode, run } = call.setting;
  const { slug } = setup.card;
  return {
    conversation: call.conversation,
    agent: slug,
    turnId: call.turnId,
    ...withBrought(openingOf(sources, setup, call.setting), setup, call.brought),
    runContext: mode === 'run' && run?.agent === slug ? runContext(run, sources.workflows) : [],
    view,
    schema: call.schema,
    profile: setup.profile,
    sessionId: sessionFor(setup, call)?.id ?? null,
    tokenRatio: call.tokenRatio,
  };
}

type Opening = Pick<RequestParts, 'prefix' | 'tools' | 'choice'>;

/** The message that brought tools to a turn, and whether its model is called for the first time. */
interface Brought {
  readonly by: MessageEntry;
  readonly isFirstCall: boolean;
}

function broughtTo(entries: readonly Entry[], turn: Turn | null): Brought | null {
  const by = turn?.toolsFrom === null || turn === null ? undefined : entries[turn.toolsFrom];
  return turn && by?.type === 'message' ? { by, isFirstCall: turn.modelCalls === 0 } : null;
}

/** The tools of each post after those of an opening: the same list as long as both are the same. */
const extended = new WeakMap<
  MessageEntry,
  { readonly own: Opening['tools']; readonly all: Opening['tools'] }
>();

/** With the tools that the trigger brought; an own tool wins against one with its name (CALLER-CALLS-1). */
function withBrought(opening: Opening, { card }: AgentSetup, brought: Brought | null): Opening {
  if (!brought || card.clientTools === false) return opening;
  const { by, isFirstCall } = brought;
  const known = extended.get(by);
  const own = opening.tools;
  const all = known?.own === own ? known.all : [...own, ...callersTools(by, own)];
  if (all.length === own.length) return opening;
  extended.set(by, { own, all });
  return { ...opening, tools: all, choice: choiceOf(by, all, isFirstCall) };
}

function callersTools(by: MessageEntry, own: Opening['tools']): WireTool[] {
  const names = new Set(own.map((tool) => tool.function.name));
  return offeredBy(by)
    .filter(({ name }) => !names.has(name))
    .map(({ name, description = '', parameters = {} }) => ({
      type: 'function',
      function: { name, description: escapeTokens(description), parameters: wireParameters(parameters) },
    }));
}

/** Null: the model decides. A choice that demands a call is one for the first call of the turn: else it would never end. */
function choiceOf(by: MessageEntry, tools: Opening['tools'], isFirstCall: boolean): CallChoice | null {
  const { toolChoice: asked = 'auto', parallelToolCalls } = by;
  const isKnown = typeof asked !== 'object' || tools.some((tool) => tool.function.name === asked.name);
  const demand = isFirstCall && isKnown && asked !== 'auto' && asked !== 'none' ? asked : null;
  if (demand === null && parallelToolCalls !== false) return null;
  return { demand, isSerial: parallelToolCalls === false };
}

/** The newest opening of an agent in each setting. */
const openings = new WeakMap<AgentSetup, Map<string, KnownOpening>>();

interface KnownOpening {
  readonly opening: Opening;
  readonly sources: RequestSources;
  readonly tools: ReturnType<RequestSources['tools']>;
}

/** The same object for all conversations, as long as nothing of it changes: they share it, and find it unchanged. */
function openingOf(sources: RequestSources, setup: AgentSetup, setting: Setting): Opening {
  const known = openings.get(setup) ?? new Map<string, KnownOpening>();
  openings.set(setup, known);
  const { mode, run } = setting;
  const key = JSON.stringify([mode, run?.workflowId, run?.node, run?.agent]);
  const newest = known.get(key);
  const tools = sources.tools();
  if (newest?.sources === sources && newest.tools === tools) return newest.opening;
  const opening = newOpening(sources, setup, setting);
  known.set(key, { opening, sources, tools });
  return opening;
}

function newOpening(sources: RequestSources, setup: AgentSetup, setting: Setting): Opening {
  const { roster, prompts } = sources;
  const owned = toolsOf(sources, setup, setting);
  const definitions = sources.tools();
  // In a stable order: the same names give the same bytes. Tools that are not offered are left out.
  const tools = [...owned.offered].sort().flatMap((name) => wireTool(name, definitions.get(name)));
  const described = new Map([...owned.availability].filter(([name]) => !PERMITS.has(name)));
  const toolPolicy = owned.offered.some((name) => described.has(name))
    ? `${prompts.toolPolicy.trim()}\n\n${describeTools(described)}`
    : '';
  return { prefix: prefix(setup, setting.mode, prompts, roster, toolPolicy.trim()), tools };
}

/**
 * The session that is sent: the one that a person named or that an agent in another process returned; to a provider, else
 * one per agent and per creation of the conversation. No provider gets what an agent returned. ASCII.
 */
function sessionFor(
  { profile, card }: AgentSetup,
  { session, conversation, first }: Pick<Call, 'session' | 'conversation' | 'first'>,
): RequestSession | null {
  if (profile.session === null) return null;
  if (profile.session.by === 'agent' || session?.by === 'person') return session;
  const id = `${conversation}-${card.slug}-${Date.parse(first?.createdAt ?? '').toString(36)}`;
  return first ? { id, by: 'daemon' } : null;
}

/** The tools listed in an agent's file and in its node. */
export interface OwnedTools {
  /** In the request. */
  readonly offered: readonly string[];
  /** Every call is forbidden by the policy. */
  readonly forbidden: readonly string[];
  /** No toolbox offers them now. */
  readonly missing: readonly string[];
  readonly availability: ReadonlyMap<string, ToolAvailability>;
}

export function toolsOf(sources: RequestSources, { card }: AgentSetup, setting: Setting): OwnedTools {
  const definitions = sources.tools();
  const listed = availableTools(card, setting, sources.workflows);
  const names = expandTools(listed, definitions.keys()).sort();
  const availability = new Map<string, ToolAvailability>();
  for (const name of names) {
    const definition = definitions.get(name);
    if (isConversationTool(name)) availability.set(name, ALWAYS_RUNS);
    else if (definition) availability.set(name, sources.availability(card.slug, definition));
  }
  const known = [...availability];
  return {
    offered: known.flatMap(([name, tool]) => (isForbidden(tool) ? [] : [name])),
    forbidden: known.flatMap(([name, tool]) => (isForbidden(tool) ? [name] : [])),
    missing: names.filter((name) => !availability.has(name)),
    availability,
  };
}

/** The next request of an agent: of its turn, or the one that it would make as the log is. */
function requestOf(
  { entries, state }: { readonly entries: readonly Entry[]; readonly state: ConversationState },
  conversation: string,
  { sources, setup, agentView, assembler, tokenRatio: given, maxFiles }: Making,
) {
  const { slug } = setup.card;
  const { turn } = agentState(state, slug);
  const setting = settingAt(state, turn?.upTo ?? state.length, slug);
  const tokenRatio = given ?? tokenRatioOf(state, slug);
  const call = {
    conversation: entries[turn?.upTo ?? entries.length - 1]?.copiedFrom ?? conversation, // FORK-1
    first: entries[0],
    setting,
    tokenRatio,
    turnId: turn?.turnId ?? 'explain',
    session: (turn ?? agentState(state, slug)).session,
    schema: schemaFor(setup, entries, turn),
    brought: broughtTo(entries, turn),
  };
  const view = agentView.build();
  const session = sessionFor(setup, call);
  const made = assembler.draft(requestParts(sources, setup, view, call));
  const missed = setup.profile.session?.by === 'agent' && missedBy(session, slug, entries, made.parts);
  const draft = missed ? { ...made, request: { ...made.request, missed } } : made;
  const { profile: window, historyLimits: limits } = setup;
  const reducible: Reducible = {
    entries,
    agentView,
    view,
    assembled: draft,
    tokenRatio,
    window,
    limits,
    form: window.form,
    maxFiles,
  };
  return { draft, session, setting, reducible };
}

interface Making {
  readonly sources: RequestSources;
  readonly setup: AgentSetup;
  readonly agentView: AgentView;
  readonly assembler: RequestAssembler;
  readonly tokenRatio?: number | undefined;
  readonly maxFiles?: number | undefined;
}

type Refused = Pick<Making, 'tokenRatio' | 'maxFiles'>;

/** The request for a log without cached bytes. `state` must be the state of `entries`. */
export function assembleOnce(
  sources: RequestSources,
  own: AgentSetup,
  entries: readonly Entry[],
  state: ConversationState,
  conversation: string,
) {
  const setup = setupFor(own, agentState(state, own.card.slug).turn);
  const agentView = new AgentView(entries, setup.card.slug, setup.viewPolicy);
  const making = { sources, setup, agentView, assembler: new RequestAssembler() };
  const made = requestOf({ entries, state }, conversation, making);
  return { ...made, setup, tools: toolsOf(sources, setup, made.setting) };
}

/** A stored definition has its own form of a conversation tool: this version may describe it in other words. */
function wireTool(name: string, definition: ToolDefinition | undefined): WireTool[] {
  if (!definition && isConversationTool(name)) {
    const { description } = CONVERSATION_TOOLS[name];
    return [{ type: 'function', function: { name, description, parameters: argumentsSchema(name) } }];
  }
  if (!definition) return [];
  const { description, parameters } = definition;
  return [{ type: 'function', function: { name, description, parameters } }];
}

/**
 * The messages of a request that the session of an agent in another process has not been told: a pure function of the log.
 *
 * MISSED-1 A session was told what the requests contained that it answered: of the entries before the newest one, not those that
 *          waited for the next turn (V1, V2). A failure is no answer: the program may never have had the request, so it is told again.
 *          A coding agent is told what arrives during its calls by a later prompt, so of its answers only those with `prompt` count.
 * MISSED-2 Its own messages are among them only where another session wrote them. What asks for an answer again (`invalid`, a pause), and
 *          a result, is new only after its newest answer: until then its program waited for it. What a person said with a permission,
 *          and an answer for which the program may have waited too long, is a later prompt of a coding agent (CODING-AGENT-5): it is told
 *          again unless a prompt or the end of a turn followed.
 * MISSED-3 The prefix is told again if the agent has another definition since it was told: its persona or its colleagues may have changed.
 */
export function missedBy(
  session: { readonly id: string } | null,
  agent: string,
  entries: readonly Entry[],
  parts: readonly Pick<WirePart, 'kind' | 'entries' | 'message'>[],
): readonly number[] | undefined {
  const told = session && toldTo(session.id, agent, entries);
  if (!told) return undefined;
  const isRedefined = definedAt(agent, entries, told.begun) !== definedAt(agent, entries, entries.length);
  const known = new Knowledge(agent, { includeCollapsed: true });
  known.catchUp(entries, told.upTo + 1);
  const isNew = (index: number) => index > told.upTo || known.isWaiting(index);
  const isOthers = (entry: Entry | undefined) =>
    entry?.type === 'message' && entry.sessionId !== session.id && entry.index > told.upTo;
  let own = -1;
  const isNews = ({ kind, entries: of, message }: (typeof parts)[number]): boolean => {
    if (kind.includes('prefix')) return isRedefined;
    if (kind.includes('away-block') || kind === 'bridge') return false;
    if (message.role === 'tool')
      return of.some((index) => index > (isLate(entries[index]) ? told.settled : told.newest));
    if (message.role === 'assistant') {
      own = of[0] ?? own;
      return isOthers(entries[own]);
    }
    if (of.length > 0) return of.some(isNew);
    return kind === 'history' || kind === 'turn' ? own >= told.newest : true;
  };
  const missed = parts.flatMap((part, place) => (isNews(part) ? [place] : []));
  return missed.every((place) => parts[place]?.kind === 'marker') ? [] : missed;
}

function isLate(entry: Entry | undefined): boolean {
  const { toolName = '', content } = entry?.type === 'message' ? entry : {};
  return AWAITED_TOOLS.has(toolName) || (PERMITS.has(toolName) && permissionIn(content ?? '').words !== '');
}

/** The definition of the agent's newest turn that began before this index. */
function definedAt(agent: string, entries: readonly Entry[], before: number): string | undefined {
  for (let at = before - 1; at >= 0; at--) {
    const entry = entries[at];
    if (entry?.type === 'turn-started' && entry.agent === agent) return entry.definition;
  }
  return undefined;
}

/**
 * Null: this session answered no request. `newest`: the index of its newest answer, `settled` of the newest one before which it was
 * told what came late, `begun` of the newest one that may have been told the prefix. `upTo`: the index of the entry that requested the
 * model call of the newest one that says what it was told.
 */
function toldTo(session: string, agent: string, entries: readonly Entry[]) {
  let newest: MessageEntry | undefined;
  let settled: number | undefined;
  let upTo: number | undefined;
  let begun: number | undefined;
  let first: number | undefined;
  for (let at = entries.length - 1; at >= 0 && begun === undefined; at--) {
    const entry = entries[at];
    if (entry?.type !== 'message' || entry.role !== 'assistant' || entry.author.id !== agent) continue;
    if (entry.partType === 'error' || entry.sessionId !== session || entry.upTo === undefined) continue;
    const { index, prompt, tool_calls: calls, finishReason } = entry;
    newest ??= entry;
    if (entry.turnId === newest.turnId) first = index;
    if (prompt || (!calls && finishReason)) settled ??= index;
    if (prompt) upTo ??= entry.upTo;
    if (prompt && prompt.news === undefined) begun = index;
  }
  if (newest?.upTo === undefined) return null;
  const { index } = newest;
  return {
    newest: index,
    settled: settled ?? index,
    upTo: upTo ?? newest.upTo,
    begun: begun ?? first ?? index,
  };
}
