import { estimateTokens, type FilePart, type ViewMessage, type ViewPart } from '../conversation/index.ts';
import type { JsonRecord } from '../kernel/index.ts';
import type { WireMessage, WireTool } from './model-port.ts';

/**
 * What a request needs of a provider's language. A dialect is pure: an encoder here, a decoder of its answers beside it
 * (`src/models/<dialect>/`).
 *
 * DIALECT-1 A fold: the same inputs and form give the same text.
 * DIALECT-2 Text that was returned never changes, so the bytes of a history are append-only (ASSEMBLE-3). Only cache points
 *    are inserted later, each at the end of a piece.
 * DIALECT-3 Calls and their results are never merged, moved or left out: pairs stay pairs (L13).
 * DIALECT-4 What is sent back satisfies the strictest reader: names of calls, arguments (one JSON object of limited depth), ids, no
 *    half of a surrogate pair. Otherwise every later request would be refused.
 * DIALECT-5 What only one model understands returns verbatim, and to that model only (`WireForm.boundTo`).
 * DIALECT-6 The list of blocks may be forged: by a log that was imported, or a provider. What is opaque is never a message, a call
 *    or a result of the protocol, sets no cache point, and is left out if a reader could refuse it (DIALECT-4).
 * DIALECT-7 The files of a message that `take` is given are of the kinds and sizes in `files`. The text has `contentMark` in place of
 *    their base64.
 */

export type DialectName = 'chat' | 'anthropic' | 'responses';

export type FileKind = 'image' | 'pdf' | 'audio';

/** The files of one kind that a provider takes. */
export interface FileRule {
  readonly types: readonly string[];
  readonly maxBytes: number;
  /** Pixels of a side; absent: any. */
  readonly maxSide?: number;
  /** Estimated tokens. */
  tokens(file: FilePart): number;
}

export interface FileRules {
  readonly kinds: Readonly<Partial<Record<FileKind, FileRule>>>;
  /** How many files a request may have, and their bytes in all. */
  readonly most: number;
  readonly maxBytes: number;
}

/** Stands in a text for the base64 of a file. No JSON text contains the control character. */
export function contentMark({ sha256 }: Pick<FilePart, 'sha256'>): string {
  return `\u0001${sha256}\u0001`;
}

/** How the messages of a view are encoded for one model. */
export interface WireForm {
  readonly dialect: DialectName;
  /** The dialect and model that get back what only they understand. Absent: nothing is kept for it. */
  readonly boundTo?: string;
  /** How long a provider keeps what it caches at a cache point. */
  readonly cacheTtl?: '5m' | '1h';
  /** The role for `system` messages of the view. This and what follows: of the dialect `chat`. */
  readonly instructionsAs: 'system' | 'developer';
  /** Files that the model is shown; `references`: it gets them by its own requests. Absent: none. */
  readonly accepts?: readonly FileKind[] | 'references';
  /** The most files of a request, if its provider takes fewer than the dialect allows. */
  readonly maxFiles?: number;
  /** Merge adjacent messages of the same role. */
  readonly mergeMessages: boolean;
  /** `with-calls`: on answers that call tools, and on those that follow a result. */
  readonly sendReasoning: 'never' | 'with-calls' | 'always';
  /** `nine`: nine letters and digits. */
  readonly callIds: 'plain' | 'nine';
  /** Answers without text and without a call. */
  readonly emptyAnswers: 'sent' | 'left-out';
  /** `assistant`: only an assistant message or another result may follow a result. */
  readonly afterResults: 'anything' | 'assistant';
  /** `marked`: the first call of an answer has a signature, as Gemini requires. */
  readonly unsignedCalls: 'plain' | 'marked';
}

/** The view as it is. */
export const PLAIN_FORM: WireForm = {
  dialect: 'chat',
  instructionsAs: 'system',
  mergeMessages: false,
  sendReasoning: 'never',
  callIds: 'plain',
  emptyAnswers: 'sent',
  afterResults: 'anything',
  unsignedCalls: 'plain',
};

/** A message of a request, its source entries, and its kind (several kinds are joined with `+`). */
export interface WirePart {
  readonly kind: string;
  readonly entries: readonly number[];
  /** As `explain` shows it, in the chat-completions form whatever the dialect is. */
  readonly message: WireMessage;
  /** What it adds to the body: JSON in the form of the dialect. Empty: it is in the beginning. */
  readonly text: string;
  /** Estimate. */
  readonly tokens: number;
  /** A cache point may be inserted before the last character of `text`. */
  readonly mayCache?: true;
  /** Content blocks in `text`, where cache points look back by blocks. */
  readonly blocks?: number;
}

/** What every request of an agent begins with. */
export interface Opening {
  /** Static fields of the body, in order. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly tools: readonly WireTool[];
  /** The system prompt. */
  readonly prefix: string;
}

/** What a caller asks of the calls of its tools. */
export interface CallChoice {
  /** At least one call, or one of this tool; null: the model decides. */
  readonly demand: 'required' | { readonly name: string } | null;
  /** One call at a time. */
  readonly isSerial: boolean;
}

/** The parameters of a model's requests, as the configuration names them. */
export interface RequestSettings {
  readonly model: string;
  readonly maxOutputTokens: number;
  readonly stream: boolean;
  readonly streamUsage: boolean;
  /** The field of the dialect `chat` that contains `maxOutputTokens`. */
  readonly outputLimit: string;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly reasoningEffort?: string | undefined;
  readonly reasoningTokens?: number | undefined;
  readonly stop?: string | readonly string[] | undefined;
  readonly seed?: number | undefined;
}

export interface Step<State> {
  readonly parts: readonly WirePart[];
  readonly state: State;
}

/** `State`: what the fold keeps between messages; immutable. */
export interface Dialect<State = unknown> {
  /** DIALECT-7 */
  readonly files: FileRules;
  /** The static fields of a body, in order. */
  fields(settings: RequestSettings): Readonly<Record<string, unknown>>;
  /** The fields of a request whose answer must follow this schema. */
  answering(fields: Readonly<Record<string, unknown>>, schema: JsonRecord): Readonly<Record<string, unknown>>;
  /** The fields of a body in which a caller's tools are asked for. `fields`: the others. */
  choose(choice: CallChoice, fields: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** The body up to its first message, and what is complete of the system prompt. */
  begin(opening: Opening, form: WireForm): Step<State> & { readonly text: string };
  /** Encodes the next message: what is complete now. */
  take(state: State, input: ViewPart, form: WireForm): Step<State>;
  /** What `state` still holds, and the end of the body. */
  end(state: State): { readonly parts: readonly WirePart[]; readonly text: string };
  /** Where the provider shall cache: places in `parts`, of which the first `settled` belong to the history. */
  cachePoints?(parts: readonly WirePart[], settled: number, form: WireForm): CachePoints;
}

export interface CachePoints {
  /** Places of parts that `mayCache`, ascending. */
  readonly at: readonly number[];
  /** What is inserted at each. */
  readonly text: string;
}

const PER_MESSAGE = 10;
const PER_CALL = 50;

/** Estimates the tokens of a message, including what providers add to each message and each call. */
export function messageTokens(message: WireMessage): number {
  let tokens = PER_MESSAGE + estimateTokens(message.content ?? '');
  tokens += estimateTokens(message.reasoning_content ?? '');
  for (const call of message.tool_calls ?? []) {
    tokens += PER_CALL + estimateTokens(call.function.name) + estimateTokens(call.function.arguments);
    tokens += opaqueTokens(call, CALL_FIELDS) + opaqueTokens(call.function, CALL_FIELDS);
  }
  for (const file of message.files ?? []) tokens += file.tokens ?? 0;
  return tokens + opaqueTokens(message, MESSAGE_FIELDS);
}

/** The same for a message of a view, with what is opaque in it, if it is sent: without it a reduction would not know what it frees. */
export function viewTokens({ blocks, reasoning, ...message }: ViewMessage, form: WireForm): number {
  const list = (blocks?.boundTo === form.boundTo && blocks?.list) || [];
  const isSent = form.dialect === 'chat' ? form.sendReasoning !== 'never' : list.length > 0;
  const opaque = list.flatMap((block) => (block.opaque ? [block.opaque] : []));
  return (
    messageTokens(isSent ? { ...message, reasoning_content: reasoning } : message) +
    opaque.reduce((sum, one) => sum + estimateTokens(JSON.stringify(one)), 0)
  );
}

/** Fields that the chat-completions form names; others are opaque. */
export const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  'role',
  'content',
  'files',
  'reasoning_content',
  'tool_calls',
  'tool_call_id',
]);
export const CALL_FIELDS: ReadonlySet<string> = new Set(['id', 'type', 'function', 'name', 'arguments']);

function opaqueTokens(fields: object, known: ReadonlySet<string>): number {
  let tokens = 0;
  for (const [name, value] of Object.entries(fields))
    if (!known.has(name)) tokens += estimateTokens(JSON.stringify([name, value]));
  return tokens;
}

export function toolTokens(tool: WireTool): number {
  return PER_CALL + estimateTokens(JSON.stringify(tool));
}
