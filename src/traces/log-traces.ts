import {
  type Entry,
  type EntryOf,
  type MessageEntry,
  resultFailure,
  splitFailedAnswer,
  type Usage,
  wireCallId,
} from '../conversation/index.ts';
import { cut, type TraceContext } from '../kernel/index.ts';
import { isPost, Lineage, type Placed, spanIdOf } from './lineage.ts';

/**
 * The names of spans and attributes. `gen_ai.*` and `error.type` follow the GenAI semantic conventions 0.1.0; `parley.*` is
 * what they have no name for.
 */
const SPAN_NAMES = {
  post: 'post',
  turn: 'invoke_agent',
  model: 'chat',
  tool: 'execute_tool',
  approval: 'approval',
  summary: 'reduce_view',
} as const;

const A = {
  operation: 'gen_ai.operation.name',
  agent: 'gen_ai.agent.name',
  conversation: 'gen_ai.conversation.id',
  model: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  cachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  tool: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  callId: 'gen_ai.tool.call.id',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  callArguments: 'gen_ai.tool.call.arguments',
  callResult: 'gen_ai.tool.call.result',
  errorType: 'error.type',
  publisher: 'parley.publisher',
  entry: 'parley.entry.index',
  turn: 'parley.turn.id',
  outcome: 'parley.turn.outcome',
  waits: 'parley.turn.waits',
  requestHash: 'parley.request.hash',
  usd: 'parley.usage.usd',
  risk: 'parley.tool.risk',
  approval: 'parley.approval.answer',
} as const;

/**
 * The spans of one log.
 *
 * LOG-TRACES-1  A span belongs to the entry that ends it. What has not ended has no span yet.
 * LOG-TRACES-2  A copied entry (a fork) has no span: its own conversation has it.
 * LOG-TRACES-3  Without `content`, no attribute contains a text that a person, a model or a tool wrote.
 */
export interface Span extends Placed {
  readonly kind: 'consumer' | 'internal' | 'client';
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string | number | string[]>>;
  /** Further causes, such as a second post that the same turn answers. */
  readonly links: readonly TraceContext[];
  readonly isError: boolean;
}

type Attributes = Record<string, string | number | string[] | undefined>;

interface Described extends Pick<Span, 'kind' | 'name'> {
  readonly error?: string | undefined;
  readonly attributes: Attributes;
}

/** Characters of one text, with `content`. */
const MOST_CONTENT = 16_384;

export class LogTraces {
  readonly lineage: Lineage;
  readonly #conversation: string;
  readonly #entries: readonly Entry[];
  readonly #content: boolean;

  constructor(conversation: string, entries: readonly Entry[], content = false) {
    this.#conversation = conversation;
    this.#entries = entries;
    this.#content = content;
    this.lineage = new Lineage(conversation, entries);
  }

  /** The spans that the entries from this index on end, in order. */
  spans(from = 0): Span[] {
    return this.#entries.slice(from).flatMap((entry) => (entry.copiedFrom ? [] : this.#endedBy(entry)));
  }

  #endedBy(entry: Entry): Span[] {
    switch (entry.type) {
      case 'message':
        if (entry.role === 'assistant') return this.#model(entry);
        if (entry.role === 'tool') return this.#tool(entry);
        return isPost(entry) && !entry.to ? [this.#post(entry, entry)] : [];
      case 'attempt-failed':
        return this.#attempt(entry);
      case 'turn-ended':
        return entry.outcome === 'waiting' ? [] : this.#turn(entry);
      case 'approval-answered':
        return this.#approval(entry);
      case 'summary':
        return this.#summary(entry);
      default:
        return [];
    }
  }

  /** Its own span, and those of the posts that are answered now. */
  #turn(end: EntryOf<'turn-ended'>): Span[] {
    const { turnId, outcome, agent } = end;
    const started = this.lineage.start(turnId);
    if (!started || started.copiedFrom) return [];
    const span = this.#span(started, end, this.lineage.turn(turnId), {
      kind: 'internal',
      name: `${SPAN_NAMES.turn} ${agent}`,
      error: outcome === 'failed' ? 'turn_failed' : undefined,
      attributes: {
        [A.operation]: SPAN_NAMES.turn,
        [A.agent]: agent,
        [A.turn]: turnId,
        [A.outcome]: outcome,
        [A.waits]: this.lineage.waits(turnId),
      },
    });
    return [...this.lineage.postsAnsweredBy(end).map((post) => this.#post(post, end)), span];
  }

  #post(entry: MessageEntry, end: Entry): Span {
    const message = { role: 'user', parts: [{ type: 'text', content: entry.content }] };
    return this.#span(entry, end, this.lineage.post(entry), {
      kind: 'consumer',
      name: SPAN_NAMES.post,
      attributes: {
        [A.publisher]: entry.author.id.split('/', 1)[0],
        [A.entry]: entry.index,
        [A.inputMessages]: this.#text([message]),
      },
    });
  }

  #model(entry: MessageEntry): Span[] {
    const { turnId, requestHash, duration = 0, model, finishReason } = entry;
    if (turnId === undefined || !requestHash) return [];
    const start = new Date(Date.parse(entry.createdAt) - duration).toISOString();
    const span = this.#span({ createdAt: start }, entry, this.lineage.modelCall(turnId, requestHash), {
      kind: 'client',
      name: model ? `${SPAN_NAMES.model} ${model}` : SPAN_NAMES.model,
      error: entry.partType === 'error' ? ownCode(splitFailedAnswer(entry.content).failure?.code) : undefined,
      attributes: {
        ...this.#of(entry, turnId),
        [A.operation]: SPAN_NAMES.model,
        [A.model]: model,
        [A.requestHash]: requestHash,
        ...usageAttributes(entry.usage),
        [A.finishReasons]: finishReason === undefined ? undefined : [finishReason],
        [A.outputMessages]: this.#text([outputOf(entry)]),
      },
    });
    return [span];
  }

  /** The next key sends the same request: the span of that call has the same id. */
  #attempt(entry: EntryOf<'attempt-failed'>): Span[] {
    const { turnId, requestHash, duration, model, code, next } = entry;
    if (requestHash === undefined || next.model === model) return [];
    const start = new Date(Date.parse(entry.createdAt) - duration).toISOString();
    const span = this.#span({ createdAt: start }, entry, this.lineage.modelCall(turnId, requestHash), {
      kind: 'client',
      name: `${SPAN_NAMES.model} ${model}`,
      error: ownCode(code),
      attributes: {
        ...this.#of(entry, turnId),
        [A.operation]: SPAN_NAMES.model,
        [A.model]: model,
        [A.requestHash]: requestHash,
      },
    });
    return [span];
  }

  #tool(entry: MessageEntry): Span[] {
    const { turnId, call, toolName = 'unknown' } = entry;
    const asked = this.#entries[call?.index ?? -1];
    if (turnId === undefined || !call || asked?.type !== 'message' || asked.copiedFrom) return [];
    const started = this.lineage.toolStart(call);
    const span = this.#span(started ?? asked, entry, this.lineage.toolCall(turnId, call), {
      kind: 'internal',
      name: `${SPAN_NAMES.tool} ${toolName}`,
      error: ownCode(resultFailure(entry.content ?? '')?.code),
      attributes: {
        ...this.#of(entry, turnId),
        [A.operation]: SPAN_NAMES.tool,
        [A.tool]: toolName,
        [A.toolType]: 'function',
        [A.callId]: wireCallId(call),
        [A.risk]: started?.risk,
        [A.callArguments]: this.#text(
          this.lineage.changedArguments(call) ?? asked.tool_calls?.[call.position]?.function.arguments,
        ),
        [A.callResult]: this.#text(entry.content),
      },
    });
    return [span];
  }

  #approval(entry: EntryOf<'approval-answered'>): Span[] {
    const request = this.lineage.approvalRequest(entry.approvalId);
    const asked = request && this.#entries[request.call.index];
    if (!request || request.copiedFrom || asked?.turnId === undefined) return [];
    const { traceId, spanId: parentId } = this.lineage.turn(asked.turnId);
    const place = { traceId, parentId, spanId: spanIdOf('approval', entry.approvalId) };
    const span = this.#span(request, entry, place, {
      kind: 'internal',
      name: SPAN_NAMES.approval,
      attributes: {
        ...this.#of(asked, asked.turnId),
        [A.tool]: request.tool,
        [A.callId]: wireCallId(request.call),
        [A.approval]: entry.answer,
      },
    });
    return [span];
  }

  /** The work began after the newest entry of the turn before it. */
  #summary(entry: EntryOf<'summary'>): Span[] {
    const { turnId } = entry;
    if (turnId === undefined) return [];
    const before = this.#entries.findLast((one) => one.index < entry.index && one.turnId === turnId) ?? entry;
    const { traceId, spanId: parentId } = this.lineage.turn(turnId);
    const place = { traceId, parentId, spanId: spanIdOf('summary', turnId, entry.id) };
    const attributes = { ...this.#of(entry, turnId), [A.agent]: entry.agent, [A.model]: entry.model };
    const span = this.#span(before, entry, place, {
      kind: 'internal',
      name: SPAN_NAMES.summary,
      attributes: { ...attributes, ...usageAttributes(entry.usage) },
    });
    return [span];
  }

  #of({ author, index }: Entry, turnId: string): Attributes {
    return { [A.agent]: author.id, [A.turn]: turnId, [A.entry]: index };
  }

  #span(
    start: Pick<Entry, 'createdAt'>,
    { createdAt }: Entry,
    place: Placed & { readonly links?: readonly TraceContext[] },
    { kind, name, error, attributes }: Described,
  ): Span {
    const end = Date.parse(createdAt);
    const given = { [A.conversation]: this.#conversation, ...attributes, [A.errorType]: error };
    const present = Object.entries(given).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, value] as const],
    );
    return {
      links: [],
      ...place,
      kind,
      name,
      end,
      start: Math.min(Date.parse(start.createdAt), end),
      attributes: Object.fromEntries(present),
      isError: error !== undefined,
    };
  }

  #text(value: unknown): string | undefined {
    if (!this.#content || value === undefined || value === null) return undefined;
    return cut(typeof value === 'string' ? value : JSON.stringify(value), MOST_CONTENT);
  }
}

function usageAttributes(usage: Usage | undefined): Attributes {
  return {
    [A.inputTokens]: usage?.inputTokens,
    [A.cachedTokens]: usage?.cachedInputTokens,
    [A.outputTokens]: usage?.outputTokens,
    [A.usd]: usage?.usd,
  };
}

function outputOf({ content, tool_calls: calls = [], finishReason }: MessageEntry) {
  const text = content ? [{ type: 'text', content }] : [];
  const made = calls.map(({ id, function: { name, arguments: given } }) => {
    return { type: 'tool_call', id, name, arguments: given };
  });
  return { role: 'assistant', parts: [...text, ...made], finish_reason: finishReason };
}

/** A code of ours, never a text of a tool or provider. */
const CODE = /^[A-Z][A-Z0-9_]{1,63}$/;

function ownCode(code: unknown): string | undefined {
  return typeof code === 'string' && CODE.test(code) ? code : undefined;
}
