import type { z } from 'zod';
import {
  type CallersCall,
  type ClientTool,
  type Entry,
  type EntryOf,
  type FilePart,
  failureOf,
  faultBySchema,
  jsonSchemaOf,
  type MessageEntry,
  OpenCalls,
  Roots,
  stoppedAmong,
  stoppedRefusal,
  TurnWatch,
  turnInputOf,
  wireCallId,
} from '../conversation/index.ts';
import {
  asError,
  hasCode,
  isRecord,
  type JsonRecord,
  linkedAbort,
  messageOf,
  ParleyError,
  readArguments,
  resultText,
  sleep,
} from '../kernel/index.ts';
import { type FollowEvent, type PostingClient, postAndFollow } from './follow.ts';
import { isUnreachable } from './requests.ts';
import type { PostAnswer, PostMessage, PostOptions } from './verbs.ts';

/**
 * A message and its answer: posts, runs the tools that the post brings, and follows until every turn that it caused has ended.
 *
 * CLIENT-ASK-1 A call is run when the log has no later entry, so that none is run whose result is there. The same `id` again, after
 *    the program ended, runs the calls that are open and no other.
 * CLIENT-ASK-2 A result is sent until a daemon has it. An input that does not match a zod schema, an error of a tool, and the refusal of
 *    its result, which may be too large, go to the model.
 * CLIENT-ASK-4 It rejects if a turn fails, is stopped or limited, but for those of a delegation: the agent that asked reads of these.
 * CLIENT-ASK-5 Turns of other messages count for nothing, unless they process this one, too: others may post to the conversation.
 * CLIENT-ASK-3 It waits as long as an approval takes. A question to a person rejects: this program does not know the answer.
 */

/** A schema of zod 4, which gives types; or a JSON Schema. */
export type Shape = z.ZodType | JsonRecord;
/** What a value of this shape is for the program. */
export type ValueOf<S> = S extends z.ZodType ? z.output<S> : unknown;

export interface CallersTool<S> {
  /** For the model. */
  readonly description?: string;
  /** The schema of the input, an object. Left out: no input. */
  readonly parameters?: S & Shape;
  readonly strict?: boolean;
  /**
   * Returns text, or a value that becomes JSON; with files, `{ content?, files: [await parley.upload(…)] }`. An error that it
   * throws goes to the model.
   */
  run(input: ValueOf<S>, call: CallOfTool): unknown;
}

/** What `run` knows of its call besides the input. */
export interface CallOfTool {
  /** `c12_0`, the same in each attempt. */
  readonly id: string;
  readonly agent: string;
  /** Aborted when the call is over: its turn was stopped, or its time is up. */
  readonly signal: AbortSignal;
}

/** `Parameters`: the shape of each tool's input, by its name. */
export interface Question<Parameters, S extends Shape> extends Omit<PostMessage, 'tools' | 'schema'> {
  /** By name. The agent may call them in the turn that the message starts. */
  readonly tools?: { readonly [Name in keyof Parameters]: CallersTool<Parameters[Name]> };
  /** What the answer's `value` has to match. */
  readonly schema?: S;
}

export interface AskOptions extends PostOptions {
  /** Each entry from the message on, and the live text. */
  readonly onEvent?: (event: FollowEvent) => void;
}

export interface Answer<Value> extends PostAnswer {
  /** The text of the last message of an agent; empty if none wrote one. */
  readonly content: string;
  /** Checked against `schema`. Without one: the value of the run that the post started, or of the answer; else undefined. */
  readonly value: Value;
  /** The entry of that message. */
  readonly entry: MessageEntry | undefined;
}

/** Between two attempts to report a result while no daemon answers. */
const RETRY_MS = 1_000;

type AnyTool = CallersTool<unknown>;

export async function askAgents<Parameters, S extends Shape>(
  client: PostingClient,
  question: Question<Parameters, S>,
  { signal, onEvent, ...more }: AskOptions,
): Promise<Answer<ValueOf<S>>> {
  const { tools = {}, schema, ...message } = question;
  const known = new Map<string, AnyTool>(Object.entries<AnyTool>(tools));
  const post: PostMessage = {
    ...message,
    ...(known.size > 0 && { tools: [...known].map(offerOf) }),
    ...(schema && { schema: asJson(schema, 'the schema of the answer') }),
  };
  const inner = linkedAbort(signal);
  try {
    const options = { ...more, live: onEvent !== undefined, signal: inner.signal };
    const { answer: posted, events } = await postAndFollow(client, post, options);
    const { conversation, agents } = posted;
    if (agents.length === 0) throw noAgent(posted);
    const detail = await client.request('conversation', { conversation }, { signal: inner.signal });
    const stopped = stoppedAmong(conversation, agents, detail.agents);
    const exchange = new Exchange(client, message, { posted, tools: known, over: inner.abort });
    exchange.watch.markStopped(stopped.agents);
    for await (const event of events) {
      onEvent?.(event);
      if (event.kind === 'live') continue;
      exchange.observe(event.entry);
      if (exchange.watch.settled) return { ...posted, ...exchange.answer(schema) } as Answer<ValueOf<S>>;
      if (!event.isCurrent) continue;
      if (exchange.watch.held && exchange.watch.stoppedAgents.length > 0) throw asError(stopped.refusal);
      exchange.goOn(inner.signal);
    }
    throw inner.signal.aborted ? inner.signal.reason : closed();
  } finally {
    inner.abort();
    inner.unlink();
  }
}

interface ExchangeOptions {
  readonly posted: PostAnswer;
  readonly tools: ReadonlyMap<string, AnyTool>;
  /** Ends it with this error. */
  readonly over: (error: unknown) => void;
}

class Exchange {
  readonly #roots = new Roots();
  readonly #calls = new OpenCalls();
  /** Observes what the post caused. */
  readonly watch = new TurnWatch(this.#calls);
  /** The turns that the post started. */
  readonly #own = new Set<string>();
  /** The agents that have not read it. */
  readonly #unread: Set<string>;
  readonly #running = new Map<string, AbortController>();
  readonly #client: PostingClient;
  readonly #by: Pick<PostMessage, 'conversation' | 'publisher' | 'author'>;
  readonly #options: ExchangeOptions;
  #said: MessageEntry | undefined;
  #valued: MessageEntry | undefined;
  /** Delegations, and the turns that they started. */
  readonly #delegated = new Set<number | string>();
  #failure: ParleyError | null = null;
  /** The value of the run that the post started. */
  #result: unknown;
  /** An agent ended the run: the turns of other branches are aborted (RUN-BRANCH-4). */
  #hasResult = false;
  /** What the newest error or limit says, by turn. */
  readonly #why = new Map<string, string>();
  /** Who interrupted the open turn of an agent. */
  readonly #interruptedBy = new Map<string, string>();

  constructor(
    client: PostingClient,
    { conversation, publisher, author }: PostMessage,
    options: ExchangeOptions,
  ) {
    this.#client = client;
    this.#by = { conversation, publisher, ...(author && { author }) };
    this.#options = options;
    this.watch.addOutstanding(options.posted.index, options.posted.agents);
    this.#unread = new Set(options.posted.agents);
  }

  observe(entry: Entry): void {
    const { index: post } = this.#options.posted;
    this.#roots.observe(entry);
    if (entry.type === 'turn-started') this.#interruptedBy.delete(entry.agent);
    else if (entry.type === 'message' && entry.delivery === 'interrupt')
      for (const agent of entry.to ?? []) this.#interruptedBy.set(agent, entry.author.name);
    if (this.#roots.isOfAnother(post, entry)) return; // CLIENT-ASK-5
    this.watch.observe(entry);
    const taken = turnInputOf(entry);
    if (taken?.messages.includes(post)) {
      this.#own.add(taken.turnId);
      this.#unread.delete(taken.agent);
    }
    if (taken?.messages.some((index) => this.#delegated.has(index))) this.#delegated.add(taken.turnId);
    if (entry.type === 'run-ended') {
      this.#result = entry.value;
      this.#hasResult = entry.author.kind === 'agent';
    }
    if (entry.type === 'delegation-requested') this.#delegated.add(entry.index);
    else if (entry.type === 'limit-reached') this.#why.set(entry.turnId ?? '', entry.content);
    else if (entry.type === 'turn-ended' && !this.#delegated.has(entry.turnId)) this.#end(entry);
    else if (entry.type === 'message' && entry.author.kind === 'agent' && entry.role === 'assistant') {
      const { refusal } = failureOf(entry.content);
      if (entry.partType === 'error')
        this.#why.set(entry.turnId ?? '', `${refusal.code}: ${refusal.message}`);
      else if (!entry.tool_calls) this.#said = entry;
      if ('value' in entry && this.#own.has(entry.turnId ?? '')) this.#valued = entry;
    }
    const open = new Set(this.#calls.ofCallers(() => true).map(({ place }) => wireCallId(place)));
    for (const [id, running] of this.#running) if (!open.has(id)) running.abort(overNow());
  }

  /** Runs what is open (CLIENT-ASK-1). */
  goOn(signal: AbortSignal): void {
    for (const call of this.#calls.ofCallers((turnId) => this.#own.has(turnId))) {
      const id = wireCallId(call.place);
      if (this.#running.has(id)) continue;
      const link = new AbortController();
      this.#running.set(id, link);
      this.#run(call, id, AbortSignal.any([link.signal, signal])).catch(this.#options.over);
    }
    const asked = this.#calls.of(() => true).find(({ approval }) => approval === null);
    if (asked && this.watch.held)
      throw new ParleyError('AGENT_ASKS', `${asked.agent} asks a person: ${asked.question}`, {
        hint: 'the turn waits: post the answer to that agent; take `ask` out of its tools if no person reads',
      });
  }

  async #run({ tool, arguments: given, asked }: CallersCall, id: string, signal: AbortSignal): Promise<void> {
    const call = { id, agent: asked.author.id, signal };
    const result = await resultOf(tool, this.#options.tools.get(tool), given, call);
    for (let told = result; !signal.aborted; ) {
      try {
        await this.#client.request('results', { ...this.#by, results: [{ call: id, ...told }] });
        return;
      } catch (error) {
        if (hasCode(error, 'CALL_OVER')) return; // the log says how
        if (isUnreachable(error)) await sleep(RETRY_MS, signal);
        else if (told === result) told = failed(messageOf(error));
        else throw error;
      }
    }
  }

  answer(schema: Shape | undefined) {
    if (this.#failure) throw this.#failure;
    if (this.#unread.size > 0) throw asError(stoppedRefusal(this.#by.conversation, [...this.#unread]));
    if (!schema)
      return {
        content: this.#said?.content ?? '',
        value: this.#result ?? this.#said?.value,
        entry: this.#said,
      };
    const entry = this.#valued;
    if (!entry) throw agentFailed(NO_VALUE, 'an agent that hands over does not pass the schema on');
    return { content: entry.content ?? '', value: parsed(schema, entry.value), entry };
  }

  #end({ agent, turnId, outcome }: EntryOf<'turn-ended'>): void {
    const why = this.#why.get(turnId);
    if (outcome === 'failed') this.#failure ??= agentFailed(why ?? `the turn of ${agent} failed`);
    if (outcome === 'aborted' && !this.#hasResult) {
      const by = this.#interruptedBy.get(agent);
      const what = by
        ? `a message of ${by} interrupted the turn of ${agent}`
        : `the turn of ${agent} was stopped`;
      this.#failure ??= new ParleyError('AGENT_STOPPED', what, { hint: by ? 'ask again' : LOG_SAYS });
    }
    if (outcome === 'limited')
      this.#failure ??= new ParleyError('LIMIT_REACHED', why ?? `the turn of ${agent} reached a limit`, {
        hint: '`parley resume` continues it, where the limit allows',
      });
  }
}

const LOG_SAYS = 'the log has the details';
const NO_VALUE = 'the turn ended without an answer that matches the schema';

function agentFailed(message: string, hint: string = LOG_SAYS): ParleyError {
  return new ParleyError('AGENT_FAILED', message, { hint });
}

function noAgent({ conversation, index }: PostAnswer): ParleyError {
  return new ParleyError('NO_AGENT', `no agent answers message ${index} of ${conversation}`, {
    hint: 'address one: `to`, or @slug in the text',
  });
}

const closed = () => new ParleyError('NATS_DISCONNECTED', 'the client was closed before the answer');
const overNow = () => new ParleyError('CALL_OVER', 'the call is over: nobody waits for its result');

function offerOf([name, { description, parameters, strict, run }]: [string, AnyTool]): ClientTool {
  if (typeof run !== 'function')
    throw new ParleyError('TOOL_INVALID', `the tool ${name} cannot be offered: it has no function run`, {
      hint: 'a list of tools without functions: use post(), and answer its calls with the request results',
    });
  return {
    name,
    ...(description !== undefined && { description }),
    ...(parameters && { parameters: asJson(parameters, `parameters of the tool ${name}`) }),
    ...(strict !== undefined && { strict }),
  };
}

const isZod = (shape: Shape): shape is z.ZodType => '_zod' in shape;

function asJson(shape: Shape, what: string): JsonRecord {
  if (!isZod(shape)) return shape;
  try {
    return jsonSchemaOf(shape, 'input');
  } catch (error) {
    throw new ParleyError('SCHEMA_INVALID', `${what}: ${messageOf(error)}`, {
      hint: 'use types that JSON Schema can express: z.iso.datetime() instead of z.date()',
    });
  }
}

function parsed(schema: Shape, value: unknown): unknown {
  if (!isZod(schema)) return value;
  const fault = faultBySchema('answer', schema, value);
  if (fault !== null) throw agentFailed(`the answer does not match the schema of this program: ${fault}`);
  return schema.parse(value);
}

interface Result {
  readonly content: string;
  readonly parts?: readonly FilePart[];
  readonly isError?: true;
}

const failed = (content: string): Result => ({ content, isError: true });

/** CLIENT-ASK-2 */
async function resultOf(
  name: string,
  tool: AnyTool | undefined,
  given: string,
  call: CallOfTool,
): Promise<Result> {
  const read = readArguments(given);
  if (!tool || !read.ok) return failed(`this program has no tool ${name} for this input`);
  const { parameters } = tool;
  const fault = parameters && isZod(parameters) ? faultBySchema(name, parameters, read.value) : null;
  if (fault !== null) return failed(fault);
  try {
    const input = parameters && isZod(parameters) ? parameters.parse(read.value) : read.value;
    return sent(await tool.run(input, call));
  } catch (error) {
    return failed(messageOf(error));
  }
}

function sent(result: unknown): Result {
  if (isRecord(result) && Array.isArray(result.files)) {
    const { content, files } = result;
    return { content: resultText(content), parts: files as readonly FilePart[] };
  }
  return { content: resultText(result) };
}
