import {
  type Answer,
  type AnswerSoFar,
  type CallOutcome,
  type CallReport,
  type Candidate,
  finishReasonOf,
  isHelpedByKey,
  isHelpedElsewhere,
  type LiveChunk,
  type Turn,
} from '../../conversation/index.ts';
import { type Clock, messageOf, type NewId, type Timers } from '../../kernel/index.ts';
import {
  MAX_TOOL_CALLS,
  type Model,
  type ModelAnswer,
  type ModelDelta,
  type ModelOutcome,
  type ModelRequest,
} from '../model-port.ts';
import type { ModelProfile } from '../requests/assemble.ts';
import { costOf, type Price } from '../requests/cost.ts';

/** What one model call of a turn needs besides its request. */
export interface CallContext {
  readonly model: Model;
  readonly retry: RetryPolicy;
  readonly signal: AbortSignal;
  /** The monotonic clock. */
  readonly elapsed: Clock;
  /** Null: the call is not shown live. */
  readonly live: { readonly publisher: LivePublisher; readonly publish: (chunk: LiveChunk) => void } | null;
  /** Called before a failed attempt is repeated. Does not throw. */
  readonly onRetry?: (retry: Retry) => void;
  readonly timers: Timers;
  readonly random: () => number;
  readonly price: Price | null;
}

/**
 * Makes one model call of a turn, retries included. Returns its outcome as a command to the conversation.
 * Never rejects: a bug in an adapter is a failed call, recorded as content of the turn (L16).
 */
export async function callModel(
  request: ModelRequest,
  facts: Pick<CallReport, 'upTo' | 'estimatedTokens'>,
  context: CallContext,
): Promise<CallOutcome> {
  const startedAt = context.elapsed();
  const outcome = limited(await callAndShow(request, context));
  const report: CallReport = {
    agent: request.agent,
    turnId: request.turnId,
    duration: Math.round(context.elapsed() - startedAt),
    requestHash: request.hash,
    ...facts,
  };
  const { sessionId, reported, prompt }: AnswerSoFar = outcome.kind === 'answered' ? {} : outcome;
  const progress = { sessionId, reported, prompt };
  switch (outcome.kind) {
    case 'answered':
      return {
        type: 'model-answered',
        answer: answerOf(outcome.answer, context.price, request.boundTo),
        ...report,
      };
    case 'failed':
      return {
        type: 'model-failed',
        code: outcome.code,
        message: outcome.message,
        partial: outcome.partial.content,
        ...progress,
        afterMs: outcome.afterMs,
        ...report,
      };
    case 'aborted':
      return { type: 'model-aborted', partial: outcome.partial.content, ...progress, ...report };
  }
}

async function callAndShow(request: ModelRequest, context: CallContext): Promise<ModelOutcome> {
  const { live } = context;
  let shown: LiveAttempt | undefined;
  try {
    return await callWithRetries(context.model, request, {
      signal: context.signal,
      policy: context.retry,
      sleep: context.timers.sleep,
      random: context.random,
      onRetry: context.onRetry,
      onAttempt() {
        shown?.end();
        shown = live?.publisher.begin(request.turnId, live.publish);
        return (delta) => shown?.add(delta);
      },
    });
  } catch (error) {
    const partial = { content: '', reasoning: '' };
    return { kind: 'failed', code: 'INTERNAL', message: messageOf(error), partial, retryable: false };
  } finally {
    shown?.end();
  }
}

/** An answer with too many calls fails: each of them would be entries, and all of them one append. */
function limited(outcome: ModelOutcome): ModelOutcome {
  if (outcome.kind !== 'answered' || outcome.answer.toolCalls.length <= MAX_TOOL_CALLS) return outcome;
  const { content, reasoning = '' } = outcome.answer;
  return {
    kind: 'failed',
    code: 'TOO_MANY_TOOL_CALLS',
    message: `The answer calls more than ${MAX_TOOL_CALLS} tools, and none was run. Check whether the model repeats itself.`,
    partial: { content: content ?? '', reasoning },
    retryable: false,
  };
}

function answerOf(answer: ModelAnswer, price: Price | null, boundTo: string | undefined): Answer {
  const { usage: tokens } = answer;
  const isPriced = tokens !== undefined && tokens.usd === undefined && price !== null;
  const usage = isPriced ? { ...tokens, usd: costOf(tokens, price) } : tokens;
  return {
    content: answer.content,
    ...(answer.files?.length && { files: answer.files }),
    reasoning: answer.reasoning || undefined,
    usage,
    model: answer.model,
    finishReason: finishReasonOf(answer.finishReason),
    sessionId: answer.sessionId,
    reported: answer.reported,
    prompt: answer.prompt,
    blocks: boundTo === undefined || !answer.blocks ? undefined : { boundTo, list: [...answer.blocks] },
    toolCalls: answer.toolCalls.map((call) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    })),
  };
}

/**
 * Retries a model call.
 *
 * RETRY-1 A call is retried only if the adapter reports it as retryable and no delta was delivered.
 * RETRY-2 Backoff is exponential with full jitter. A delay that the provider asks for (`afterMs`) replaces it.
 * RETRY-3 If the provider asks for a delay over `LONGEST_WAIT_MS`, the call fails with a message that says so.
 * RETRY-4 An abort ends a wait at once. Every attempt sends the same request.
 */
export interface RetryPolicy {
  /** Attempts in all, including the first. */
  readonly attempts: number;
  /** Upper bound of the first wait. It doubles with each attempt, up to `maxMs`. */
  readonly baseMs: number;
  readonly maxMs: number;
}

/** A failed attempt that is repeated. */
export interface Retry {
  /** The number of the next attempt, and of attempts in all. */
  readonly attempt: number;
  readonly attempts: number;
  readonly waitMs: number;
  /** Why the last one failed. */
  readonly code: string;
  readonly message: string;
}

export interface RetryOptions {
  readonly signal: AbortSignal;
  /** Called when an attempt starts (from 1). Returns the receiver of its deltas. */
  readonly onAttempt: (attempt: number) => (delta: ModelDelta) => void;
  readonly policy: RetryPolicy;
  /** Called before the wait for the next attempt. Does not throw. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** Resolves after the delay or when the signal aborts. Never rejects; leaves no timer. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
}

/** RETRY-3. Milliseconds. */
export const LONGEST_WAIT_MS = 60_000;

export async function callWithRetries(
  model: Model,
  request: ModelRequest,
  options: RetryOptions,
): Promise<ModelOutcome> {
  const { signal, policy } = options;
  let tries = 0;
  for (let attempt = 1; ; attempt += 1) {
    const onDelta = options.onAttempt(attempt);
    let gaveDelta = false;
    const outcome = await model.call(request, {
      signal,
      onDelta(delta) {
        gaveDelta = true;
        onDelta(delta);
      },
    });
    if (outcome.kind !== 'failed' || !outcome.retryable || gaveDelta) return outcome;
    if (signal.aborted) return { kind: 'aborted', partial: outcome.partial };
    tries += outcome.tries ?? 1;
    if (attempt >= policy.attempts) return withAdvice(outcome, tries === 1 ? '' : `Tried ${tries} times.`);
    const wait = outcome.afterMs ?? backoff(attempt, policy, options.random);
    if (wait > LONGEST_WAIT_MS) {
      const seconds = Math.ceil(wait / 1000);
      return withAdvice(
        outcome,
        `The provider wants ${seconds} s to pass before the next try: come back then.`,
      );
    }
    const { code, message } = outcome;
    options.onRetry?.({
      attempt: attempt + 1,
      attempts: policy.attempts,
      waitMs: wait,
      code,
      message,
    });
    await options.sleep(wait, signal);
    if (signal.aborted) return { kind: 'aborted', partial: outcome.partial };
  }
}

function backoff(attempt: number, policy: RetryPolicy, random: () => number): number {
  const bound = Math.min(policy.maxMs, policy.baseMs * 2 ** (attempt - 1), LONGEST_WAIT_MS);
  return Math.floor(random() * bound);
}

type Failed = Extract<ModelOutcome, { kind: 'failed' }>;

function withAdvice(outcome: Failed, text: string): Failed {
  if (text === '') return outcome;
  const message = outcome.message.trimEnd();
  return { ...outcome, message: `${message}${/[.!?…]$/.test(message) ? '' : '.'} ${text}` };
}

/**
 * Who may answer the model calls of a turn: each key of the agent's model, then each key of each fallback.
 *
 * CANDIDATES-1 A turn begins with the first. A failed attempt moves it to a later one, for the rest of the turn; never back.
 * CANDIDATES-2 The move is durable (`attempt-failed`) before the next candidate is called.
 * CANDIDATES-3 Nothing of an answer was shown, and the failure is of a kind that another candidate may not have
 *              (`model-failure.ts`).
 */
export interface ModelCandidate extends Candidate {
  readonly client: Model;
}

interface Choosable {
  readonly profile: Pick<ModelProfile, 'name'>;
  readonly model: Model;
  readonly fallbacks?: readonly Choosable[];
}

/** The candidate that the turn asks now, and those after it. */
export function candidatesFor(
  own: Choosable,
  { candidate }: Pick<Turn, 'candidate'>,
): { readonly asked: ModelCandidate; readonly others: readonly ModelCandidate[] } {
  const all = [own, ...(own.fallbacks ?? [])].flatMap(withKeys);
  const ofModel = all.findIndex(({ model }) => model === candidate?.model);
  const exact = all.findIndex(({ model, key }) => model === candidate?.model && key === candidate.key);
  const at = Math.max(0, exact < 0 ? ofModel : exact); // a later configuration may lack the key, or the model
  return { asked: all[at] ?? { model: own.profile.name, client: own.model }, others: all.slice(at + 1) };
}

function withKeys({ profile: { name: model }, model: client }: Choosable): ModelCandidate[] {
  return client.keys?.map((one, at) => ({ model, key: at + 1, client: one })) ?? [{ model, client }];
}

/** Those of `others` that may answer where `failed` could not for this reason, in order (CANDIDATES-3). */
export function helping(
  code: string,
  failed: Candidate,
  others: readonly ModelCandidate[],
): readonly ModelCandidate[] {
  if (!isHelpedElsewhere(code)) return [];
  return isHelpedByKey(code) ? others : others.filter(({ model }) => model !== failed.model);
}

interface LiveAttempt {
  add(delta: ModelDelta): void;
  /** LIVE-TEXT-3. Call it once. */
  end(): void;
}

/** LIVE-TEXT-1. The interval grows by a millisecond with each running attempt. */
const SHORTEST_MS = 10;
const LONGEST_MS = 50;
/** Characters: a longer chunk might exceed what a server of the bus accepts. */
const LONGEST_CHUNK = 16_384;
/** Characters of an id that name an attempt: random ones, enough within a conversation. */
const CALL_LENGTH = 10;

/**
 * Publishes the deltas of running model calls as numbered chunks.
 *
 * LIVE-TEXT-1 The first delta of an attempt is published at once, and so is each one after a pause. What follows within
 *    `LONGEST_MS` is merged. With few running attempts, the interval is shorter.
 * LIVE-TEXT-2 The chunks of an attempt, concatenated per kind and tool call, are its deltas in order, numbered from 0. A
 *    chunk has one kind, and the text of one tool call.
 * LIVE-TEXT-3 An attempt that ends publishes what is left: no entry precedes its text.
 * LIVE-TEXT-4 All attempts publish at the same time, so that the bus writes their chunks together.
 */
export class LivePublisher {
  readonly #timers: Timers;
  readonly #newId: NewId;
  /** Attempts that published since the last tick, or have something to publish. */
  readonly #flowing = new Set<NumberedChunks>();
  /** Attempts that have not ended. */
  #running = 0;
  #isTicking = false;

  constructor(timers: Timers, newId: NewId) {
    this.#timers = timers;
    this.#newId = newId;
  }

  /** `publish` does not throw. */
  begin(turnId: string, publish: (chunk: LiveChunk) => void): LiveAttempt {
    const chunks = new NumberedChunks(turnId, this.#newId().slice(-CALL_LENGTH), publish);
    this.#running += 1;
    return {
      add: (delta) => {
        chunks.add(delta);
        if (this.#flowing.has(chunks)) return;
        chunks.flush();
        this.#flowing.add(chunks);
        this.#plan();
      },
      end: () => {
        this.#running -= 1;
        chunks.flush();
        this.#flowing.delete(chunks);
      },
    };
  }

  #plan(): void {
    if (this.#isTicking || this.#flowing.size === 0) return;
    this.#isTicking = true;
    const interval = Math.min(LONGEST_MS, SHORTEST_MS + this.#running);
    this.#timers.after(interval, () => this.#tick(), { unref: true });
  }

  #tick(): void {
    this.#isTicking = false;
    for (const chunks of this.#flowing) if (!chunks.flush()) this.#flowing.delete(chunks);
    this.#plan();
  }
}

class NumberedChunks {
  readonly #turnId: string;
  readonly #call: string;
  readonly #publish: (chunk: LiveChunk) => void;
  #next = 0;
  /** The beginning of the next chunk, and its whole text; null: nothing is pending. */
  #first: ModelDelta | null = null;
  #text = '';

  constructor(turnId: string, call: string, publish: (chunk: LiveChunk) => void) {
    this.#turnId = turnId;
    this.#call = call;
    this.#publish = publish;
  }

  add(delta: ModelDelta): void {
    if (this.#first && !continues(this.#first, delta)) this.flush();
    this.#first ??= delta;
    this.#text += delta.delta;
    if (this.#text.length > LONGEST_CHUNK) this.flush();
  }

  /** Whether there was anything to publish. */
  flush(): boolean {
    const first = this.#first;
    if (first === null) return false;
    const { type } = first;
    const chunk = { turnId: this.#turnId, call: this.#call, n: this.#next, type, delta: this.#text };
    this.#next += 1;
    this.#first = null;
    this.#text = '';
    if (first.type !== 'tool_call_delta') this.#publish(chunk);
    else this.#publish({ ...chunk, toolCallId: `${this.#call}_${first.position}`, toolName: first.name });
    return true;
  }
}

/** LIVE-TEXT-2: whether both may be in one chunk. */
function continues(first: ModelDelta, second: ModelDelta): boolean {
  if (second.type !== 'tool_call_delta') return first.type === second.type;
  return first.type === second.type && first.position === second.position && second.name === undefined;
}
