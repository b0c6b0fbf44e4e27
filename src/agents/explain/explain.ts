import {
  type AgentView,
  agentState,
  type ConversationState,
  type Cost,
  EMPTY_STATE,
  type Entry,
  type ExplainedRequest,
  evolve,
  expand,
  type FilePart,
  filesOf,
  isOfAPerson,
  type LeftOut,
  type NextReduction,
  NOTHING_USED,
  nextTrigger,
  type ReductionStatus,
  type ReportedDefinition,
  type ReportedPart,
  shownName,
  summaryEntry,
  turnStart,
  usedTogether,
  usedWith,
  type ViewReport,
  windowLimit,
} from '../../conversation/index.ts';
import { type Refusal, refusal } from '../../kernel/index.ts';
import {
  type Definition,
  definitionOf,
  partHashes,
  sourcesOf as storedSources,
} from '../definition/definition.ts';
import type { ModelRequest, WireMessage } from '../model-port.ts';
import { type Assembled, type ModelProfile, sealed, shownParameters } from '../requests/assemble.ts';
import { type FileCache, type LoadedFiles, NO_FILES, unseenFiles } from '../requests/files.ts';
import {
  needsReduction,
  nextReductionOf,
  type Reducible,
  reductionEntry,
  reductionFor,
} from '../requests/reduce.ts';
import { type AgentSetup, assembleOnce, type RequestSources } from '../requests/requests.ts';

/** The exact request that led to an agent's answer, and a report on it (`parley explain`, endpoint `view`). */
export interface Explanation {
  /** The files in `body`. */
  readonly files: readonly FilePart[];
  readonly messages: readonly WireMessage[];
  readonly report: ViewReport;
  /** The exact bytes that are sent to the model, in the form of its dialect. */
  readonly body: ModelRequest['body'];
}

/** What people get: the body only if they ask for it, then without the messages, which it contains. */
export function shownExplanation(
  { messages, report, body }: Explanation,
  withBody: boolean | undefined,
): ExplainedRequest {
  return withBody
    ? { messages: [], report, body: Buffer.concat(body).toString('utf8') }
    : { messages, report };
}

export type Explained =
  | { readonly ok: true; readonly explanation: Explanation }
  | { readonly ok: false; readonly refusal: Refusal };

/** What is asked about a log. */
interface ExplainedPlace {
  readonly conversation: string;
  readonly agent?: string | undefined;
  readonly at?: number | undefined;
  /** The parts of the definition whose texts the report contains. */
  readonly texts?: readonly string[] | undefined;
}

/** What a request is built from. */
interface KnownSources {
  readonly live: RequestSources;
  /** The definition of its turn; null: `live`. */
  readonly recorded?: Definition | null;
  /** Of all files that the request contains; without them it has no body and no hash. */
  readonly contents?: LoadedFiles;
}

export interface ExplainContext {
  readonly sources: RequestSources;
  /** The stored ones, and the content of files. */
  readonly definitions: { read(hash: string): Promise<Definition>; readonly files: FileCache };
}

/**
 * As `explain`, with the definition that the log names for that request. Without an agent: the request that led to answer `at`, or to
 * the newest answer.
 */
export async function explainStored(
  entries: readonly Entry[],
  { conversation, agent: whose, at: place, texts }: ExplainedPlace,
  { sources, definitions }: ExplainContext,
): Promise<Explained> {
  const answered = whose === undefined ? answerOfAny(entries, place) : null;
  const agent = whose ?? answered?.author.id;
  if (agent === undefined) return noAnswer(entries, conversation, place);
  const at = answered?.index ?? place;
  const hash = definitionAt(entries, agent, at);
  const recorded = hash === null ? null : await definitions.read(hash);
  const asked = { conversation, agent, at, texts };
  const known = { live: sources, recorded };
  const draft = explain(entries, asked, known);
  if (!draft.ok || draft.explanation.files.length === 0) return draft;
  return explain(entries, asked, {
    ...known,
    contents: await definitions.files.load(draft.explanation.files),
  });
}

/** The definition in the newest `turn-started` of the turn that the request belongs to; null: none is recorded. */
export function definitionAt(
  entries: readonly Entry[],
  agent: string,
  at: number | undefined,
): string | null {
  const known = entries.slice(0, lengthAt(entries, agent, at));
  const { turn } = agentState(known.reduce(evolve, EMPTY_STATE), agent);
  const started = turn && known[turn.resumedAt];
  return (started?.type === 'turn-started' && started.definition) || null;
}

/** The log's length when the request was built. */
function lengthAt(entries: readonly Entry[], agent: string, at: number | undefined): number {
  return answerAt(entries, agent, at)?.index ?? (at === undefined ? entries.length : at + 1);
}

/**
 * The request that entry `at` answers, if that is an answer of this agent; else the request that the agent would make
 * if `at` were the last entry (default: the log as it is).
 */
export function explain(
  entries: readonly Entry[],
  { conversation, agent, at, texts = [] }: ExplainedPlace & { readonly agent: string },
  { live, recorded = null, contents = NO_FILES }: KnownSources,
): Explained {
  const sources = recorded ? storedSources(recorded) : live;
  const setup = sources.agents.get(agent);
  if (!setup)
    return refused(
      'UNKNOWN_AGENT',
      `there is no agent ${agent}`,
      `known agents: ${[...live.agents.keys()].join(', ')}`,
    );
  if (at !== undefined && !entries[at]) return noEntry(entries, conversation, at);
  const answer = answerAt(entries, agent, at);
  const length = lengthAt(entries, agent, at);
  const prepared = withTurn(entries.slice(0, length), agent);
  if (!prepared) {
    const text = `conversation ${conversation} has no message that ${agent} could answer`;
    return refused('NOTHING_TO_EXPLAIN', text, 'post a message first');
  }
  const target = { conversation, length, answer, recorded, texts, contents };
  return { ok: true, explanation: explanationOf(prepared, target, setup, sources) };
}

function answerOfAny(entries: readonly Entry[], at: number | undefined): Entry | undefined {
  const entry = at === undefined ? entries.findLast(isAnswer) : entries[at];
  return entry && isAnswer(entry) ? entry : undefined;
}

function noEntry(entries: readonly Entry[], conversation: string, at: number): Explained {
  const range = entries.length === 0 ? 'it is empty' : `it has entries 0 to ${entries.length - 1}`;
  return refused('NO_SUCH_ENTRY', `conversation ${conversation} has no entry ${at}; ${range}`);
}

function noAnswer(entries: readonly Entry[], conversation: string, at: number | undefined): Explained {
  if (at === undefined) {
    const text = `no agent has answered in conversation ${conversation}`;
    return refused('NOTHING_TO_EXPLAIN', text, 'name an agent: its next request is explained');
  }
  if (!entries[at]) return noEntry(entries, conversation, at);
  const text = `entry ${at} is no answer of an agent`;
  return refused('NOTHING_TO_EXPLAIN', text, 'name the agent, or the entry of an answer');
}

function isAnswer(entry: Entry): boolean {
  return entry.type === 'attempt-failed' || (entry.type === 'message' && entry.role === 'assistant');
}

function refused(...why: Parameters<typeof refusal>): Explained {
  return { ok: false, refusal: refusal(...why) };
}

/** The request to explain. */
interface Target {
  readonly conversation: string;
  /** Number of log entries from which the request was built. */
  readonly length: number;
  /** The answer to the request; null: the next request, not made yet. */
  readonly answer: Entry | null;
  /** Null: no definition is recorded for it. */
  readonly recorded: Definition | null;
  readonly texts: readonly string[];
  readonly contents: LoadedFiles;
}

function answerAt(entries: readonly Entry[], agent: string, at: number | undefined): Entry | null {
  const entry = at === undefined ? undefined : entries[at];
  return entry && isAnswer(entry) && entry.author.id === agent ? entry : null;
}

/** The entries; if no turn is open, followed by the start of the turn that would answer them. */
function withTurn(entries: readonly Entry[], agent: string): Entry[] | null {
  const state = agentState(entries.reduce(evolve, EMPTY_STATE), agent);
  if (state.turn) return [...entries];
  const waiting = nextTrigger(state.waiting);
  const trigger = waiting.length > 0 ? waiting : newestPost(entries);
  if (trigger.length === 0) return null;
  return [...entries, ...turnStart(entries, agent, trigger)];
}

function newestPost(entries: readonly Entry[]): number[] {
  const newest = entries.findLast((entry) => isOfAPerson(entry) && entry.includeInContext !== false);
  return newest ? [newest.index] : [];
}

interface BuiltRequest extends ReturnType<typeof assembleOnce> {
  readonly entries: readonly Entry[];
  readonly state: ConversationState;
}

type SealedRequest = BuiltRequest & { readonly assembled: Assembled };

/** A request that was not sent before is first reduced where due, as the daemon would, but with the extract as summary. */
export function buildRequest(
  prepared: readonly Entry[],
  { conversation, mayReduce }: { readonly conversation: string; readonly mayReduce: boolean },
  setup: AgentSetup,
  sources: RequestSources,
): BuiltRequest {
  const { slug } = setup.card;
  const entries = [...prepared];
  for (;;) {
    const state = entries.reduce(evolve, EMPTY_STATE);
    const made = assembleOnce(sources, setup, entries, state, conversation);
    const reduction = mayReduce ? reductionFor(made.reducible) : null;
    if (reduction === null) return { entries, state, ...made };
    const written = reductionEntry(reduction, { content: reduction.write(null), writtenBy: 'extract' });
    const turnId = agentState(state, slug).turn?.turnId ?? '';
    entries.push(summaryEntry(entries.length, turnId, slug, written));
  }
}

function explanationOf(
  prepared: readonly Entry[],
  target: Target,
  own: AgentSetup,
  sources: RequestSources,
): Explanation {
  const { conversation, answer, contents } = target;
  const built = buildRequest(prepared, { conversation, mayReduce: answer === null }, own, sources);
  const assembled = sealed(built.draft, contents);
  const made = { ...built, assembled };
  const { entries, state, setup, tools, reducible } = made;
  const { profile, card } = setup;
  const { request } = assembled;
  const holdings = holdingsOf(reducible, target.length);
  const weighed = weigh(assembled, reducible.tokenRatio);
  const note = noteOn(made, prepared.length, target.answer);
  return {
    files: built.draft.files,
    messages: request.messages,
    body: request.body,
    report: {
      agent: card.slug,
      answer: answer?.index ?? null,
      tokens: assembled.tokens,
      window: profile.contextTokens,
      reserved: profile.maxOutputTokens,
      token_ratio: reducible.tokenRatio,
      status: statusOf(reducible, holdings),
      included: holdings.included,
      left_out: holdings.leftOut.flatMap(({ indexes }) => indexes),
      left_out_as: holdings.leftOut.map(({ indexes: _, ...fate }) => fate),
      shortened: holdings.shortened,
      without_files: holdings.withoutFiles,
      ...unseenIn(reducible),
      waiting: holdings.waiting,
      tokens_by_group: weighed.groups,
      next_reduction: nextReduction(reducible, profile, holdings),
      sent: wasSent(made, target.answer, card.slug),
      definition: reportedDefinition(target, sources, card.slug),
      cost: costOfRequest(entries.slice(0, target.length), state, card.slug, target.answer),
      tools: tools.offered,
      tools_missing: tools.missing,
      tools_forbidden: tools.forbidden,
      ...(note === null ? {} : { note }),
      requestHash: request.hash,
      model: profile.name,
      ...shownParameters(profile),
      ...(made.session && { session: made.session }),
      ...toldOf(made, target),
      fault: assembled.fault,
      parts: weighed.parts,
    },
  };
}

function unseenIn({ view, entries, form, assembled }: Reducible): Pick<ViewReport, 'unseen_files'> {
  const shown = { form, tools: assembled.request.tools };
  const unseen = [...view.history.slice(0, view.historyLength), ...view.tail].flatMap((part) =>
    unseenFiles(part.message, shown).map(({ file, why }) => ({
      entry: part.entries.find((at) => hasFile(entries[at], file)) ?? part.entries[0] ?? -1,
      name: shownName(file),
      why,
    })),
  );
  return unseen.length === 0 ? {} : { unseen_files: unseen };
}

const hasFile = (entry: Entry | undefined, { sha256 }: FilePart) =>
  entry !== undefined && filesOf(entry).some((file) => file.sha256 === sha256);

/** What the log names of the prompt before this answer; else what follows from the request. */
function toldOf(
  { entries, setup, session, assembled: { request } }: SealedRequest,
  { answer, length }: Target,
): Pick<ViewReport, 'told'> {
  if (setup.profile.session?.by !== 'agent') return {};
  const given = answer?.type === 'message' ? answer : null;
  const known = entries.slice(0, length).findLast((entry) => hasPrompt(entry, setup.card.slug));
  const newest = known?.type === 'message' ? known : null;
  const { prompt } = given ?? {};
  if (given && !prompt && newest?.turnId === given.turnId)
    return { told: { session: 'waiting', messages: [] } };
  const all = request.messages.map((_, place) => place);
  const { takes } = prompt ?? newest?.prompt ?? {};
  const facts = { ...(takes && { takes }), ...(prompt && { hash: prompt.hash }) };
  if (prompt?.news !== undefined) {
    const ofOthers = all.filter((place) => !isOwn(request.messages[place]));
    return { told: { session: 'continued', messages: ofOthers.slice(-prompt.news), ...facts } };
  }
  if (request.missed === undefined) {
    const state = prompt?.isNew === false ? 'continued' : 'new';
    return { told: { session: state, messages: all, ...facts } };
  }
  const isLast = given !== null && !given.tool_calls && given.sessionId !== undefined;
  const isNew = prompt?.isNew ?? (isLast ? given.sessionId !== session?.id : 'unknown');
  const state = isNew === 'unknown' ? isNew : isNew ? 'new' : 'continued';
  return { told: { session: state, messages: isNew === true ? all : request.missed, ...facts } };
}

const hasPrompt = (entry: Entry, agent: string) =>
  entry.type === 'message' && entry.author.id === agent && entry.prompt !== undefined;
const isOwn = (message: WireMessage | undefined) => message?.role === 'assistant' || message?.role === 'tool';

function reportedDefinition(
  { recorded, texts: names }: Target,
  live: RequestSources,
  agent: string,
): ReportedDefinition {
  const definition = recorded ?? definitionOf(live, agent);
  if (!definition) throw new Error(`there is no agent ${agent}`);
  const { hash } = definition;
  const texts = [...definition.parts].filter(([name]) => names.includes(name));
  return {
    hash,
    recorded: recorded !== null,
    parts: partHashes(definition),
    ...(names.length > 0 && { texts: Object.fromEntries(texts) }),
  };
}

/**
 * Whether the hash in the log is that of this request: at the answer, or at the entry that asked for it. A later
 * `turn-started` of the turn asks again. Once that request has its answer, no entry names the next one.
 */
function wasSent(
  { entries, state, assembled }: SealedRequest,
  answer: Entry | null,
  agent: string,
): boolean | 'unknown' {
  const { upTo = -1, resumedAt = -1, answeredUpTo = 0 } = agentState(state, agent).turn ?? {};
  const at = Math.max(upTo, resumedAt);
  const asked = answer ?? (answeredUpTo <= at ? entries[at] : undefined);
  const isNamed = answer !== null || asked?.type === 'turn-started' || asked?.type === 'summary';
  const recorded = isNamed && asked && 'requestHash' in asked ? asked.requestHash : undefined;
  return recorded ? recorded === assembled.request.hash : 'unknown';
}

function noteOn({ entries }: BuiltRequest, prepared: number, answer: Entry | null): string | null {
  if (answer && 'requestHash' in answer && !answer.requestHash)
    return 'the daemon refused this request and never sent it';
  if (entries.length === prepared) return null;
  const made = entries.slice(prepared).map(({ index }) => index);
  return `a reduction comes before this request; entry ${made.join(' and ')}, which is not in the log, shows it as an extract: the text of a summarising model, and so the hash, would differ`;
}

/** The entries of the log that a request includes, and the status of the others that this agent knows. */
interface Holdings {
  readonly included: readonly number[];
  readonly leftOut: readonly LeftOutRange[];
  readonly shortened: readonly number[];
  readonly withoutFiles: readonly number[];
  readonly waiting: readonly number[];
}

/** Adjacent known entries that were left out for the same reason. */
interface LeftOutRange extends LeftOut {
  readonly indexes: number[];
}

function holdingsOf(reducible: Reducible, length: number): Holdings {
  const { entries, agentView, assembled } = reducible;
  const { knowledge } = agentView;
  const shownEntries = new Set(assembled.parts.flatMap((part) => [...part.entries]));
  const known = knownBy(entries.slice(0, length), agentView);
  const waiting = known.filter((index) => knowledge.isWaiting(index));
  const isLeftOut = (index: number) => !shownEntries.has(index) && !knowledge.isWaiting(index);
  const included = [...shownEntries].filter((index) => index < length).sort((a, b) => a - b);
  return {
    included,
    leftOut: leftOutRanges(known, isLeftOut, reducible, shownEntries),
    shortened: included.filter((index) => knowledge.previewLength(index) !== undefined),
    withoutFiles: included.filter((index) => knowledge.isWithoutFiles(index)),
    waiting,
  };
}

/** What this agent can be shown of others, its own messages, and the results of its calls. */
function knownBy(entries: readonly Entry[], { knowledge }: AgentView): number[] {
  return entries
    .filter((entry) => {
      if (entry.type !== 'message' || entry.role !== 'tool')
        return knowledge.knows(entry) || knowledge.mayContain(entry);
      const asked = entry.call && entries[entry.call.index];
      const isCounted =
        entry.call && knowledge.resultsOf(entry.call.index)[entry.call.position] === entry.index;
      return asked !== undefined && isCounted === true && knowledge.knows(asked);
    })
    .map((entry) => entry.index);
}

/** `by` is the summary that replaces the entries, else the one that left them out. */
function leftOutRanges(
  known: readonly number[],
  isLeftOut: (index: number) => boolean,
  { entries, agentView }: Reducible,
  shownEntries: ReadonlySet<number>,
): LeftOutRange[] {
  const reasons = new Map<number, Pick<LeftOut, 'how' | 'by'>>();
  for (const entry of entries) {
    if (entry.type !== 'summary' || entry.agent !== agentView.knowledge.agent) continue;
    for (const index of expand(entry.leftOut ?? [])) reasons.set(index, { how: 'left_out', by: entry.index });
    if (!shownEntries.has(entry.index)) continue;
    for (const index of expand(entry.entries)) reasons.set(index, { how: 'summed_up', by: entry.index });
  }
  const rows: LeftOutRange[] = [];
  let last: LeftOutRange | null = null;
  for (const index of known) {
    const reason: Pick<LeftOut, 'how' | 'by'> | null = isLeftOut(index)
      ? (reasons.get(index) ?? { how: 'empty' })
      : null;
    if (last && reason && last.how === reason.how && last.by === reason.by) rows.pop();
    else last = null;
    if (reason === null) continue;
    const indexes: number[] = last?.indexes ?? []; // a copy for each index would take quadratic time
    indexes.push(index);
    const from: number = last?.from ?? index;
    last = { from, to: index, ...reason, recall: { from, to: index }, indexes };
    rows.push(last);
  }
  return rows;
}

function statusOf(reducible: Reducible, { shortened, withoutFiles }: Holdings): ReductionStatus {
  const { assembled } = reducible;
  if (assembled.fault?.code === 'CONTEXT_STILL_TOO_LARGE') return 'failed';
  if (needsReduction(reducible) && nextReductionOf(reducible) === null) return 'no_effect';
  const isReduced =
    shortened.length + withoutFiles.length > 0 ||
    assembled.parts.some((part) => part.kind.split('+').includes('summary'));
  return isReduced ? 'reduced' : 'not_needed';
}

/** Tokens of each message and each group. Whole numbers that add up to the tokens of the request. */
function weigh(
  { parts, estimatedTokens, tokens }: Assembled,
  tokenRatio: number,
): { readonly parts: readonly ReportedPart[]; readonly groups: Readonly<Record<string, number>> } {
  const plain = parts.map((part) => part.tokens);
  let estimate = estimatedTokens - plain.reduce((sum, one) => sum + one, 0);
  let counted = Math.min(tokens, Math.ceil(estimate * tokenRatio));
  const groups: Record<string, number> = counted > 0 ? { tools: counted } : {};
  const weighed = parts.map(({ kind, entries }, place) => {
    estimate += plain[place] ?? 0;
    const sum = Math.ceil(estimate * tokenRatio);
    const own = sum - counted;
    counted = sum;
    const group = kind === 'marker' ? 'away-block' : kind;
    groups[group] = (groups[group] ?? 0) + own;
    return { kind, entries, tokens: own };
  });
  return { parts: weighed, groups };
}

function nextReduction(reducible: Reducible, profile: ModelProfile, { included }: Holdings): NextReduction {
  const { max, target } = windowLimit(profile.contextTokens - profile.maxOutputTokens, 0);
  const plan = nextReductionOf(reducible);
  const shownEntries = new Set(included);
  const includedOf = (indexes: readonly number[]) => indexes.filter((index) => shownEntries.has(index));
  return {
    above: max,
    target,
    limits: { messages: reducible.limits.maxMessages, chars: reducible.limits.maxChars },
    due: needsReduction(reducible),
    would: plan && {
      drop_files: includedOf(plan.withoutFiles),
      shorten: includedOf(plan.shortened),
      sum_up: includedOf(expand(plan.covered)),
      leave_out: includedOf(expand(plan.leftOut)),
    },
  };
}

/** `answer`: the answer to the request, which counts too. `state`: the state of `entries`, without the answer. */
function costOfRequest(
  entries: readonly Entry[],
  state: ConversationState,
  agent: string,
  answer: Entry | null,
): Cost {
  const all = answer === null ? entries : [...entries, answer];
  const turnId = answer?.turnId ?? agentState(state, agent).turn?.turnId;
  const ofTurn = all.filter((entry) => turnId !== undefined && entry.turnId === turnId);
  const before = (slug: string) => agentState(state, slug).used;
  const own = answer === null ? before(agent) : usedWith(before(agent), answer);
  const others = Object.keys(state.agents).filter((slug) => slug !== agent);
  const usage = answer?.type === 'message' ? answer.usage : undefined;
  return {
    call: usage ?? null,
    turn: ofTurn.reduce(usedWith, NOTHING_USED),
    agent: own,
    conversation: usedTogether([own, ...others.map(before)]),
  };
}
