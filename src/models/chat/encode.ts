import {
  CALL_FIELDS,
  contentMark,
  type Dialect,
  MESSAGE_FIELDS,
  messageTokens,
  type Opening,
  type RequestSettings,
  type Step,
  type WireForm,
  type WirePart,
} from '../../agents/dialect-port.ts';
import type { OpaqueFields, WireFile, WireMessage } from '../../agents/model-port.ts';
import type { ViewMessage, ViewPart } from '../../conversation/index.ts';
import { isRecord, wellFormed } from '../../kernel/index.ts';
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
 * Encodes messages of the view as chat completions. All differences between providers of this protocol are here.
 *
 * CHAT-1 A closed message never changes; only the last one is open: the next one may be merged into it (DIALECT-2).
 * CHAT-2 Messages of several authors that are merged are separated by a marker that content cannot contain (L17).
 * CHAT-3 Opaque fields never replace a field of the protocol.
 * CHAT-4 A model that checks signatures gets one with each answer that has calls: its own, or the one for other models' calls.
 */
interface ChatState {
  /** The message that may still grow; null: no input yet. */
  readonly open: OpenPart | null;
  /** No message is closed yet. */
  readonly isFirst: boolean;
}

/** A part without its text, which depends on its place. */
interface OpenPart extends Pick<WirePart, 'kind' | 'entries' | 'message'> {
  /** The places of the files of the message in its content. */
  readonly places?: readonly number[];
}

const AUDIO_FORMATS: Readonly<Record<string, string>> = {
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/mpeg': 'mp3',
};

export const chat: Dialect<ChatState> = {
  files: {
    ...FILES_OF_REQUEST,
    kinds: {
      image: { types: IMAGE_TYPES, maxBytes: 10_000_000, tokens: tilesOf },
      pdf: PDF,
      audio: {
        types: Object.keys(AUDIO_FORMATS),
        maxBytes: FILES_OF_REQUEST.maxBytes,
        tokens: ({ size, mediaType }) => size / (mediaType === 'audio/mpeg' ? 500 : 1_000),
      },
    },
  },
  fields: fieldsOf,
  answering: (fields, schema) => ({
    ...fields,
    response_format: { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema } },
  }),
  choose({ demand, isSerial }) {
    return {
      ...(demand && {
        tool_choice: demand === 'required' ? demand : { type: 'function', function: demand },
      }),
      ...(isSerial && { parallel_tool_calls: false }),
    };
  },
  begin({ fields, tools, prefix }: Opening, form) {
    const start = JSON.stringify(tools.length > 0 ? { ...fields, tools } : fields).slice(0, -1);
    const text = `${start}${start === '{' ? '' : ','}"messages":[`;
    const message: WireMessage = { role: form.instructionsAs, content: wellFormed(prefix) };
    const open = prefix === '' ? null : { kind: 'prefix', entries: [], message };
    return { text, parts: [], state: { open, isFirst: true } };
  },
  take({ open, isFirst }, input, form) {
    const step = takePart(open, input, form);
    return closing(step.closed, step.open, isFirst);
  },
  end({ open, isFirst }) {
    return { parts: open ? closing([open], null, isFirst).parts : [], text: ']}' };
  },
};

function closing(closed: readonly OpenPart[], open: OpenPart | null, isFirst: boolean): Step<ChatState> {
  const parts = closed.map((part, place) => ({
    ...part,
    text: `${isFirst && place === 0 ? '' : ','}${jsonOf(part)}`,
    tokens: messageTokens(part.message),
  }));
  return { parts, state: { open, isFirst: isFirst && closed.length === 0 } };
}

/** A model that is given references only gets the message as it is. */
function jsonOf({ message, places = [] }: OpenPart): string {
  const { role, content, files = [] } = message;
  if (files.every(({ tokens }) => tokens === undefined)) return JSON.stringify(message);
  const blocks: string[] = [];
  let from = 0;
  const textUpTo = (to: number) => {
    const text = content?.slice(from, to) ?? '';
    if (text !== '') blocks.push(JSON.stringify({ type: 'text', text }));
    from = to;
  };
  for (const [at, file] of files.entries()) {
    textUpTo(places[at] ?? 0);
    blocks.push(fileBlock(file));
  }
  textUpTo(content?.length ?? 0);
  return `{"role":${JSON.stringify(role)},"content":[${blocks.join(',')}]}`;
}

function fileBlock(file: WireFile): string {
  const data = contentMark(file);
  const format = AUDIO_FORMATS[file.mediaType];
  if (format !== undefined)
    return `{"type":"input_audio","input_audio":{"data":"${data}","format":"${format}"}}`;
  const url = `"data:${file.mediaType};base64,${data}"`;
  if (IMAGE_TYPES.includes(file.mediaType)) return `{"type":"image_url","image_url":{"url":${url}}}`;
  return `{"type":"file","file":{"filename":${JSON.stringify(documentName(file))},"file_data":${url}}}`;
}

const PARAMETER_FIELDS = {
  temperature: 'temperature',
  topP: 'top_p',
  reasoningEffort: 'reasoning_effort',
  stop: 'stop',
  seed: 'seed',
} as const satisfies Partial<Record<keyof RequestSettings, string>>;

function fieldsOf(settings: RequestSettings): Readonly<Record<string, unknown>> {
  const { model, stream, streamUsage, outputLimit, maxOutputTokens } = settings;
  const names = Object.keys(PARAMETER_FIELDS) as (keyof typeof PARAMETER_FIELDS)[];
  const given = names.filter((name) => settings[name] !== undefined);
  return {
    model,
    stream,
    ...(stream && streamUsage ? { stream_options: { include_usage: true } } : {}),
    [outputLimit]: maxOutputTokens,
    ...Object.fromEntries(given.map((name) => [PARAMETER_FIELDS[name], settings[name]])),
  };
}

interface FormStep {
  /** Messages that are now complete, in order. */
  readonly closed: readonly OpenPart[];
  readonly open: OpenPart | null;
}

/** Separates merged messages; the same line in content is escaped (MARKER-1). */
const NEXT_MESSAGE_MARKER = '=== NEXT MESSAGE ===';

/** Inserted where a provider requires an assistant message after a result. */
const BRIDGE: OpenPart = {
  kind: 'bridge',
  entries: [],
  message: { role: 'assistant', content: 'Understood.' },
};

/** Some reasoning models refuse a call whose reasoning is missing or empty. */
const NO_REASONING = ' ';

/** The value that Gemini documents for calls that it did not make. */
const FOREIGN_CALL = { extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } };

function takePart(open: OpenPart | null, input: ViewPart, form: WireForm): FormStep {
  if (form.emptyAnswers === 'left-out' && isEmptyAnswer(input.message)) return { closed: [], open };
  const part = wirePart(input, open, form);
  if (!open) return { closed: [], open: part };
  const { role } = part.message;
  if (form.afterResults === 'assistant' && open.message.role === 'tool' && !MAY_FOLLOW_RESULT.has(role)) {
    return { closed: [open, BRIDGE], open: part };
  }
  if (form.mergeMessages && canMerge(open.message, part.message)) {
    return { closed: [], open: merged(open, part) };
  }
  return { closed: [open], open: part };
}

const MAY_FOLLOW_RESULT: ReadonlySet<string> = new Set(['assistant', 'tool']);

function isEmptyAnswer({ role, content, tool_calls: calls }: ViewMessage): boolean {
  return role === 'assistant' && !calls?.length && (content ?? '').trim() === '';
}

function wirePart({ kind, entries, message }: ViewPart, before: OpenPart | null, form: WireForm): OpenPart {
  const { role, content, files, tool_calls: calls, tool_call_id: id } = message;
  const reasoning = reasoningOf(message, before, form);
  const opaque = opaqueOf(message, form);
  const wire: WireMessage = {
    ...outside(ANSWER_FIELDS, opaque.message),
    role: role === 'system' ? form.instructionsAs : role,
    content: content === null ? null : wellFormed(content),
    ...(files === undefined ? {} : { files }),
    ...(reasoning === undefined ? {} : { reasoning_content: wellFormed(reasoning) }),
    ...(calls === undefined
      ? {}
      : { tool_calls: calls.map((call, at) => wireCall(call, at, form, opaque.calls[at])) }),
    ...(id === undefined ? {} : { tool_call_id: callId(id, form) }),
  };
  return { kind, entries, message: wire, places: files?.map(() => content?.length ?? 0) };
}

/** Fields of a message that the protocol names, or that only report. Those that only answer are not part of a request. */
export const ANSWER_FIELDS: ReadonlySet<string> = new Set([
  ...['role', 'content', 'reasoning_content', 'reasoning', 'refusal', 'tool_calls', 'tool_call_id'],
  ...['function_call', 'name', 'annotations', 'audio'],
  ...['channel', 'executed_tools'], // of Groq, which refuses them
]);

/** The opaque fields of the message, and those of each call: most messages have none. */
function opaqueOf(own: ViewMessage, form: WireForm) {
  if (!own.blocks || own.blocks.boundTo !== form.boundTo) return NOTHING_OPAQUE;
  const blocks = ownBlocks(own, form);
  const items = blocks.flatMap((block) => (block.type === 'opaque' ? [block.opaque] : []));
  const calls = blocks.flatMap((block) => (block.type === 'call' ? [block.opaque] : []));
  const message: OpaqueFields = Object.fromEntries(items.flatMap((item) => Object.entries(item)));
  return { message, calls };
}

const NOTHING_OPAQUE = { message: {} as OpaqueFields, calls: [] as (OpaqueFields | undefined)[] };

function reasoningOf(
  { role, reasoning, tool_calls: calls }: ViewMessage,
  before: OpenPart | null,
  { sendReasoning }: WireForm,
): string | undefined {
  if (sendReasoning === 'never' || role !== 'assistant') return undefined;
  if (calls?.length) return reasoning || NO_REASONING;
  const sent = sendReasoning === 'always' || before?.message.role === 'tool';
  return sent ? reasoning || undefined : undefined;
}

const PLAIN_ID = /^c(\d+)_(\d+)$/;

/** `c12_0` as nine letters and digits, unique per call: six for the entry, two for the position. */
function callId(id: string, { callIds }: WireForm): string {
  const place = callIds === 'nine' ? PLAIN_ID.exec(id) : null;
  if (!place) return id;
  const [entry = '', position = ''] = place.slice(1).map((digits) => Number(digits).toString(36));
  return `c${entry.padStart(6, '0')}${position.padStart(2, '0')}`;
}

type WireCall = NonNullable<WireMessage['tool_calls']>[number];

/** DIALECT-4, CHAT-4 */
function wireCall(call: WireCall, at: number, form: WireForm, opaque?: OpaqueFields | null): WireCall {
  const { name, arguments: given } = call.function;
  const more = isRecord(opaque?.function) ? outside(CALL_FIELDS, opaque.function) : {};
  const accepted = { ...more, name: wireName(name), arguments: wireArguments(given) };
  const unsigned = form.unsignedCalls === 'marked' && at === 0 ? FOREIGN_CALL : {};
  return {
    ...unsigned,
    ...outside(CALL_FIELDS, opaque),
    id: callId(call.id, form),
    type: call.type,
    function: accepted,
  };
}

/** CHAT-3: a log that was imported can contain any. */
function outside(known: ReadonlySet<string>, fields: OpaqueFields | null = null): OpaqueFields {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([name]) => !known.has(name)));
}

/** DIALECT-3: earlier text may be merged into a message with calls, but later messages may not. */
function canMerge(open: WireMessage, next: WireMessage): boolean {
  return open.role === next.role && open.role !== 'tool' && !open.tool_calls?.length;
}

function merged(open: OpenPart, next: OpenPart): OpenPart {
  const reasoning = [open.message.reasoning_content, next.message.reasoning_content]
    .filter((text) => text?.trim())
    .join('\n\n');
  const content = joined(open.message, next.message);
  const files = [...(open.message.files ?? []), ...(next.message.files ?? [])];
  const moved = content.length - (next.message.content?.length ?? 0);
  const sent = reasoning || (next.message.reasoning_content ?? open.message.reasoning_content);
  return {
    kind: open.kind.split('+').includes(next.kind) ? open.kind : `${open.kind}+${next.kind}`,
    entries: [...open.entries, ...next.entries],
    message: {
      ...joinedFields(
        outside(MESSAGE_FIELDS, { ...open.message }),
        outside(MESSAGE_FIELDS, { ...next.message }),
      ),
      role: open.message.role,
      content,
      ...(files.length > 0 && { files }),
      ...(sent === undefined ? {} : { reasoning_content: sent }),
      ...(next.message.tool_calls === undefined ? {} : { tool_calls: next.message.tool_calls }),
    },
    places: [...(open.places ?? []), ...(next.places ?? []).map((place) => moved + place)],
  };
}

/** Opaque fields of messages that become one: lists follow each other, else the later value counts. */
function joinedFields(open: OpaqueFields, next: OpaqueFields): OpaqueFields {
  const lists = Object.entries(next).flatMap(([name, value]) => {
    const before = open[name];
    return Array.isArray(before) && Array.isArray(value) ? [[name, [...before, ...value]] as const] : [];
  });
  return { ...open, ...next, ...Object.fromEntries(lists) };
}

/** CHAT-2: not needed between an agent's own messages, nor before or after another marker. */
function joined(open: WireMessage, next: WireMessage): string {
  const [before, after] = [open.content ?? '', next.content ?? ''];
  if (open.role === 'assistant') return [before, after].filter((text) => text !== '').join('\n\n');
  const lastLine = before.slice(before.lastIndexOf('\n') + 1);
  const isMarked = after.startsWith('=== ') || (lastLine.startsWith('=== ') && lastLine.endsWith(' ==='));
  return isMarked ? `${before}\n\n${after}` : `${before}\n\n${NEXT_MESSAGE_MARKER}\n\n${after}`;
}
