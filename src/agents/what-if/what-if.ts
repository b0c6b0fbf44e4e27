import { isDeepStrictEqual } from 'node:util';
import {
  type Answer,
  addedUp,
  type CallOutcome,
  type Entry,
  filesOf,
  type MessageEntry,
  NOTHING_USED,
  partsOf,
  type Used,
} from '../../conversation/index.ts';
import { parseJson } from '../../kernel/index.ts';
import { buildRequest } from '../explain/explain.ts';
import { type Assembled, type ModelProfile, sealed } from '../requests/assemble.ts';
import { type FileCache, NO_FILES } from '../requests/files.ts';
import { type AgentSetup, type ModelChoice, type RequestSources, withModel } from '../requests/requests.ts';

/**
 * Sends the requests of a recorded turn again, with one change. Pure but for `Variant.call`.
 *
 * WHAT-IF-1 The first request is the recorded one: the same log, definition and code give the same bytes, apart from the change.
 * WHAT-IF-2 No tool runs. While an answer makes the recorded calls of its step (their order may differ), the next request
 *           contains that answer and the recorded results. At any other call the run ends.
 * WHAT-IF-3 Nothing is written: the log is read only.
 */

/** What is changed in the definition of a turn. Null: as recorded. */
export interface Change {
  readonly model: ModelChoice | null;
  readonly persona: string | null;
}

export type RunOutcome =
  /** A final answer: it calls no tool. */
  | 'answered'
  /** It followed the recorded calls to the end of the turn, which has no further answer. */
  | 'ended'
  /** It called something else (WHAT-IF-2). */
  | 'diverged'
  | 'failed'
  | 'interrupted';

export interface WantedCall {
  readonly name: string;
  readonly arguments: string;
}

export interface Run {
  readonly outcome: RunOutcome;
  /** The text of its last answer. */
  readonly content: string | null;
  /** The calls of its last answer; none of them ran. */
  readonly toolCalls: readonly WantedCall[];
  readonly finishReason?: string;
  /** As reported by the provider. */
  readonly model?: string;
  /** Model calls it made, from the first request on. */
  readonly steps: number;
  readonly used: Used;
  /** Milliseconds in model calls. */
  readonly duration: number;
  /** Hash of its first request; empty: none was built. */
  readonly requestHash: string;
  /** Why it failed. */
  readonly code?: string;
  readonly message?: string;
}

/** What one side of the comparison sends its requests with. */
export interface Variant {
  /** The definition of a step. */
  sources(definition: string): Promise<RequestSources>;
  /** False: the request was sent before, with the reductions that the log has. */
  readonly mayReduce: boolean;
  /** One model call with its retries. Never rejects. */
  call(request: Assembled, profile: ModelProfile): Promise<CallOutcome>;
}

export interface RecordedLog {
  readonly conversation: string;
  readonly agent: string;
  readonly entries: readonly Entry[];
  /** The content of the files that it names. Absent: all are missing. */
  readonly files?: FileCache | undefined;
}

/** Repeats the turn each time it is called; its first request is built once. */
export function createReplay(log: RecordedLog, turn: RecordedTurn, variant: Variant): () => Promise<Run> {
  let first: Promise<Built> | null = null;
  return async () => {
    first ??= build(log, turn, 0, [], variant);
    return replay(log, turn, variant, await first);
  };
}

interface Built {
  readonly assembled: Assembled;
  readonly profile: ModelProfile;
}

async function replay(log: RecordedLog, turn: RecordedTurn, variant: Variant, first: Built): Promise<Run> {
  const answers: Replacement[] = [];
  let run: Run = { ...NO_RUN, requestHash: first.assembled.request.hash };
  for (let at = 0; ; at++) {
    const { assembled, profile } = at === 0 ? first : await build(log, turn, at, answers, variant);
    if (assembled.fault) return failed(run, assembled.fault);
    const outcome = await variant.call(assembled, profile);
    run = { ...run, steps: run.steps + 1, duration: run.duration + outcome.duration };
    if (outcome.type === 'model-failed')
      return failed({ ...run, content: outcome.partial || null, used: paid(run, outcome) }, outcome);
    if (outcome.type === 'model-aborted') {
      const { limit } = outcome;
      if (limit) return failed({ ...run, steps: run.steps - 1 }, { ...limit, code: limit.name });
      return { ...run, outcome: 'interrupted', content: outcome.partial || null };
    }
    const { answer } = outcome;
    run = { ...withAnswer(run, answer), used: paid(run, outcome) };
    if (answer.toolCalls.length === 0) return { ...run, outcome: 'answered' };
    const index = turn.steps[at]?.index ?? -1;
    const inOrder = recordedOrder(log.entries[index], answer);
    if (inOrder === null) return { ...run, outcome: 'diverged' };
    if (at === turn.steps.length - 1) return { ...run, outcome: 'ended' };
    answers.push({ index, answer: { ...answer, toolCalls: inOrder } });
  }
}

const NO_RUN: Run = {
  outcome: 'failed',
  content: null,
  toolCalls: [],
  steps: 0,
  used: NOTHING_USED,
  duration: 0,
  requestHash: '',
};

function failed(run: Run, { code, message }: { readonly code: string; readonly message: string }): Run {
  return { ...run, outcome: 'failed', code, message };
}

function withAnswer(run: Run, { content, toolCalls, finishReason, model }: Answer): Run {
  return {
    ...run,
    content,
    toolCalls: toolCalls.map((call) => ({
      name: call.function.name,
      arguments: call.function.arguments,
    })),
    finishReason,
    model,
  };
}

/** A call whose provider reports no usage, or whose model has no price, has an unknown cost. */
function paid({ used }: Run, outcome: CallOutcome): Used {
  const usage = outcome.type === 'model-answered' ? outcome.answer.usage : undefined;
  const isPaid =
    outcome.type === 'model-answered' || (outcome.type === 'model-failed' && outcome.partial !== '');
  const unpricedCalls = isPaid && usage?.usd === undefined ? 1 : 0;
  return addedUp(used, { ...usage, calls: 1, unpricedCalls });
}

/** The answer of a run in place of the recorded one. */
interface Replacement {
  readonly index: number;
  readonly answer: Answer;
}

async function build(
  log: RecordedLog,
  { steps }: RecordedTurn,
  at: number,
  answers: readonly Replacement[],
  variant: Variant,
): Promise<Built> {
  const { conversation, agent, entries } = log;
  const { index, definition } = steps[at] ?? steps[0];
  const sources = await variant.sources(definition ?? '');
  const setup = sources.agents.get(agent);
  if (!setup) throw new Error(`the definition ${definition} has no agent ${agent}`);
  const prepared = entries.slice(0, index);
  for (const { index: step, answer } of answers) prepared[step] = replaced(prepared[step], answer);
  const target = { conversation, mayReduce: variant.mayReduce };
  const { draft, setup: asked } = buildRequest(prepared, target, setup, sources);
  const contents = (await log.files?.load(draft.files)) ?? NO_FILES;
  return { assembled: sealed(draft, contents), profile: asked.profile };
}

function replaced(entry: Entry | undefined, { content, reasoning, blocks, toolCalls }: Answer): Entry {
  if (entry?.type !== 'message') throw new Error('the answer of a step is a message');
  const { fullOutputPath: _, ...kept } = entry;
  const parts = partsOf(content ?? '', filesOf(entry));
  return { ...kept, content, parts, reasoning, blocks, tool_calls: [...toolCalls] };
}

/** The calls in the order of the recorded ones, whose results they get; null: they are other calls. */
function recordedOrder(entry: Entry | undefined, { toolCalls }: Answer): Answer['toolCalls'] | null {
  const recorded = (entry as MessageEntry | undefined)?.tool_calls ?? [];
  if (recorded.length !== toolCalls.length) return null;
  const left = [...toolCalls];
  const inOrder = recorded.flatMap((call) => {
    const found = left.findIndex((other) => isSameCall(call.function, other.function));
    return found < 0 ? [] : left.splice(found, 1);
  });
  return inOrder.length === recorded.length ? inOrder : null;
}

/** The order of keys and white space do not matter. */
function isSameCall(one: WantedCall, other: WantedCall): boolean {
  const [ours, others] = [one, other].map(({ arguments: text }) => parseJson(text) ?? { invalid: text });
  return one.name === other.name && isDeepStrictEqual(ours, others);
}

/** The sources of a recorded definition with the change. Its other parts are as recorded. */
export function changed(sources: RequestSources, agent: string, { model, persona }: Change): RequestSources {
  const setup = sources.agents.get(agent);
  if (!setup) return sources;
  const withPersona = (one: AgentSetup) => ({ ...one, persona: persona ?? one.persona });
  const next = model
    ? { ...withPersona(withModel(setup, model)), fallbacks: [] }
    : { ...withPersona(setup), fallbacks: setup.fallbacks?.map(withPersona) };
  return { ...sources, agents: new Map([[agent, next]]) };
}

/** One model call of a turn. */
export interface RecordedStep {
  /** The index of its answer; the request was built from the entries before it. */
  readonly index: number;
  /** Hash of the definition that the request was built from; null: none is recorded. */
  readonly definition: string | null;
}

export interface RecordedTurn {
  readonly turnId: string;
  /** At least one, in order. */
  readonly steps: readonly [RecordedStep, ...RecordedStep[]];
}

/** The turns of one agent that called its model, as a log records them. */
export function recordedTurns(entries: readonly Entry[], agent: string): RecordedTurn[] {
  const definitions = new Map<string, string | null>();
  const turns = new Map<string, RecordedStep[]>();
  for (const entry of entries) {
    if (entry.type === 'turn-started' && entry.agent === agent)
      definitions.set(entry.turnId, entry.definition ?? null);
    if (!isAnswerTo(entry, agent) || entry.turnId === undefined) continue;
    const step = { index: entry.index, definition: definitions.get(entry.turnId) ?? null };
    turns.set(entry.turnId, [...(turns.get(entry.turnId) ?? []), step]);
  }
  return [...turns].flatMap(([turnId, [first, ...others]]) =>
    first === undefined ? [] : [{ turnId, steps: [first, ...others] }],
  );
}

/** The answer to a request that was sent: an import has no hash, and a refused request an empty one. */
function isAnswerTo(entry: Entry, agent: string): entry is MessageEntry {
  return (
    entry.type === 'message' &&
    entry.role === 'assistant' &&
    entry.author.kind === 'agent' &&
    entry.author.id === agent &&
    Boolean(entry.requestHash)
  );
}

/** The turn that entry `at` belongs to. */
export function turnAt(
  turns: readonly RecordedTurn[],
  entries: readonly Entry[],
  at: number,
): RecordedTurn | undefined {
  const turnId = entries[at]?.turnId;
  return turns.find((turn) => turn.turnId === turnId);
}

/** The part of a turn from the request that entry `at` answers; unchanged if it answers none. */
export function fromAnswer({ turnId, steps }: RecordedTurn, at: number): RecordedTurn {
  const [first, ...others] = steps.slice(
    Math.max(
      0,
      steps.findIndex(({ index }) => index === at),
    ),
  );
  return first === undefined ? { turnId, steps } : { turnId, steps: [first, ...others] };
}
