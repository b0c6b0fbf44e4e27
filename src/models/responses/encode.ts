import {
  contentMark,
  type Dialect,
  messageTokens,
  type Opening,
  type RequestSettings,
  type WireForm,
} from '../../agents/dialect-port.ts';
import type { OpaqueFields, WireFile, WireMessage } from '../../agents/model-port.ts';
import {
  type AnswerBlock,
  estimateTokens,
  type ViewMessage,
  type ViewPart,
} from '../../conversation/index.ts';
import { wellFormed } from '../../kernel/index.ts';
import {
  documentName,
  FILES_OF_REQUEST,
  IMAGE_TYPES,
  ownBlocks,
  PDF,
  tilesOf,
  wireArguments,
  wireName,
} from '../sent.ts';

/**
 * Encodes messages of the view as items of OpenAI's Responses API. The provider stores nothing: all that it needs is sent.
 *
 * RESPONSES-1 Reasoning returns encrypted, in its place, and only if an item of the same answer follows it: the provider refuses
 *    it otherwise. With `sendReasoning: never` nothing opaque returns, as encrypted reasoning is bound to an organization, too.
 * RESPONSES-2 Opaque fields never replace a field of the protocol.
 */
interface ResponsesState {
  /** No item is encoded yet. */
  readonly isFirst: boolean;
}

type Item = Readonly<Record<string, unknown>>;

/** The texts of an item in the text of its block: a type of content and its length. An empty type separates two texts. */
export type Piece = readonly [type: string, length: number];

export const responses: Dialect<ResponsesState> = {
  files: {
    ...FILES_OF_REQUEST,
    kinds: {
      image: { types: IMAGE_TYPES, maxBytes: FILES_OF_REQUEST.maxBytes, tokens: tilesOf },
      pdf: PDF,
    },
  },
  fields: fieldsOf,
  answering: (fields, schema) => ({
    ...fields,
    text: { ...Object(fields.text), format: { type: 'json_schema', name: 'answer', strict: true, schema } },
  }),
  choose({ demand, isSerial }) {
    return {
      ...(demand && { tool_choice: demand === 'required' ? demand : { type: 'function', ...demand } }),
      ...(isSerial && { parallel_tool_calls: false }),
    };
  },
  begin({ fields, tools, prefix }: Opening) {
    const start = JSON.stringify({
      ...fields,
      ...(prefix === '' ? {} : { instructions: wellFormed(prefix) }),
      ...(tools.length === 0 ? {} : { tools: tools.map(({ function: tool }) => toolOf(tool)) }),
    });
    const message: WireMessage = { role: 'developer', content: wellFormed(prefix) };
    const part = { kind: 'prefix', entries: [], message, text: '', tokens: messageTokens(message) };
    return { text: `${start.slice(0, -1)},"input":[`, parts: [part], state: { isFirst: true } };
  },
  take({ isFirst }, input, form) {
    const { message, items, opaque } = itemsOf(input, form);
    const text = items.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))).join(',');
    if (text === '') return { parts: [], state: { isFirst } };
    const part = {
      kind: input.kind,
      entries: input.entries,
      message,
      text: isFirst ? text : `,${text}`,
      tokens: messageTokens(message) + opaque,
    };
    return { parts: [part], state: { isFirst: false } };
  },
  end: () => ({ parts: [], text: ']}' }),
};

/** The provider refuses less. */
const LEAST_OUTPUT_TOKENS = 16;

function fieldsOf(settings: RequestSettings): Item {
  const { model, stream, maxOutputTokens, temperature, topP, reasoningEffort: effort } = settings;
  return {
    model,
    stream,
    store: false,
    include: ['reasoning.encrypted_content'],
    max_output_tokens: Math.max(maxOutputTokens, LEAST_OUTPUT_TOKENS),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(effort === undefined
      ? {}
      : { reasoning: effort === 'none' ? { effort } : { effort, summary: 'auto' } }),
  };
}

/** The provider takes a tool without `strict` as a strict one. */
function toolOf({ name, description, parameters, strict }: ToolFunction): Item {
  return { type: 'function', name, description, parameters, strict: strict === true };
}
type ToolFunction = Opening['tools'][number]['function'];

interface Encoded {
  readonly message: WireMessage;
  /** A string: as its JSON. */
  readonly items: readonly (Item | string)[];
  /** Estimated tokens of what `message` does not show. */
  readonly opaque: number;
}

function itemsOf({ message }: ViewPart, form: WireForm): Encoded {
  const { role, tool_call_id: id } = message;
  const content = message.content === null ? null : wellFormed(message.content);
  if (role === 'assistant') return ownItems(message, content, form);
  const text = content ?? '';
  if (id !== undefined) {
    const items = [{ type: 'function_call_output', call_id: id, output: text }];
    return { message: { role, content, tool_call_id: id }, items, opaque: 0 };
  }
  const spoken = role === 'user' ? role : 'developer';
  const { files } = message;
  const words = JSON.stringify({ type: 'input_text', text });
  const blocks = [words, ...(files ?? []).map(fileBlock)].join(',');
  const item = `{"type":"message","role":"${spoken}","content":[${blocks}]}`;
  return { message: { role: spoken, content, ...(files && { files }) }, items: [item], opaque: 0 };
}

function fileBlock(file: WireFile): string {
  const url = `"data:${file.mediaType};base64,${contentMark(file)}"`;
  if (IMAGE_TYPES.includes(file.mediaType))
    return `{"type":"input_image","detail":"auto","image_url":${url}}`;
  return `{"type":"input_file","filename":${JSON.stringify(documentName(file))},"file_data":${url}}`;
}

/** An answer of the agent itself. An empty one has no item. */
function ownItems(message: ViewMessage, content: string | null, form: WireForm): Encoded {
  const calls = (message.tool_calls ?? []).map(({ id, function: called }) => ({
    id,
    type: 'function' as const,
    function: { name: wireName(called.name), arguments: wireArguments(called.arguments) },
  }));
  const reader = form.sendReasoning === 'never' ? { ...form, boundTo: '' } : form;
  const sent = ownBlocks(message, reader).filter(isSent);
  let reasoning = '';
  let opaque = 0;
  const items = sent.flatMap((block): Item[] => {
    if (block.type === 'reasoning') reasoning += block.text;
    if (block.opaque) opaque += estimateTokens(JSON.stringify(block.opaque));
    const item = ownItem(block, calls);
    return item === null ? [] : [item];
  });
  const wire: WireMessage = {
    role: 'assistant',
    content,
    ...(reasoning === '' ? {} : { reasoning_content: wellFormed(reasoning) }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return { message: wire, items, opaque };
}

/** RESPONSES-1, DIALECT-6 */
function isSent(block: AnswerBlock, at: number, all: readonly AnswerBlock[]): boolean {
  if (block.type === 'text') return block.text !== '';
  if (block.type === 'opaque') return !isOwnType(block.opaque);
  if (block.type !== 'reasoning') return true;
  const isFollowed = all.slice(at + 1).some((next) => next.type !== 'reasoning' && isSent(next, 0, []));
  return block.opaque !== undefined && isFollowed;
}

/** The items that this encoder writes or refers to, and results. An item with a role is a message, too. */
function isOwnType({ type, role }: OpaqueFields): boolean {
  return role !== undefined || typeof type !== 'string' || OWN_TYPES.test(type);
}
const OWN_TYPES = /^(message|reasoning|function_call|item_reference)$|_output$/;

/** RESPONSES-2 */
function ownItem(block: AnswerBlock, calls: NonNullable<WireMessage['tool_calls']>): Item | null {
  if (block.type === 'opaque') return block.opaque;
  if (block.type === 'call') {
    const call = calls[block.position];
    if (call === undefined) return null;
    return { ...block.opaque, type: 'function_call', call_id: call.id, ...call.function };
  }
  const { pieces, ...more }: OpaqueFields = block.opaque ?? {};
  const texts = textsOf(block.text, Array.isArray(pieces) ? pieces : []);
  if (block.type === 'reasoning') {
    const [summary, content] = ['summary_text', 'reasoning_text'].map((type) =>
      texts.filter((text) => text.type === type),
    );
    const status = undefined; // the provider returns one, and refuses it; older entries have it
    return { ...more, type: 'reasoning', status, summary, content: content?.length ? content : undefined };
  }
  const written = texts.length > 0 ? texts : [{ type: 'output_text', text: wellFormed(block.text) }];
  const message = { ...more, type: 'message', role: 'assistant' };
  // An item with an id is one of the provider's; one without is a message of the caller, whose content is a text.
  if (more.id === undefined)
    return { ...message, content: written.map(({ text, refusal }) => text ?? refusal ?? '').join('') };
  const content = written.map((text) => (text.type === 'refusal' ? text : { ...text, annotations: [] }));
  return { status: 'completed', ...message, content };
}

/** A content of an item. */
interface Said {
  readonly type: string;
  readonly text?: string;
  readonly refusal?: string;
}

/** By the pieces of the text of a block. */
function textsOf(text: string, pieces: readonly unknown[]): Said[] {
  let from = 0;
  return pieces.filter(isPiece).flatMap(([type, length]) => {
    const piece = wellFormed(text.slice(from, from + length));
    from += length;
    return type === '' ? [] : [type === 'refusal' ? { type, refusal: piece } : { type, text: piece }];
  });
}

function isPiece(value: unknown): value is Piece {
  return Array.isArray(value) && typeof value[0] === 'string' && typeof value[1] === 'number';
}
