import type { PartKind, ViewMessage, ViewPart } from '../../conversation/index.ts';
import { isRecord, readArguments, wellFormed } from '../../kernel/index.ts';
import type { OpaqueFields, WireMessage } from '../model-port.ts';

/**
 * Encodes messages of the view as wire messages. All differences between providers are here.
 *
 * WIRE-FORM-1 A pure fold: the same messages and form give the same wire messages.
 * WIRE-FORM-2 A closed wire message never changes; only the last one is open. So the bytes of a history are
 *    append-only (ASSEMBLE-3), with merging too.
 * WIRE-FORM-3 Calls and their results are never merged, moved or left out: pairs stay pairs (L13).
 * WIRE-FORM-4 Messages of several authors that are merged are separated by a marker that content cannot contain (L17).
 * WIRE-FORM-5 Everything that is sent back satisfies the strictest reader: names of calls, arguments (one JSON object of limited
 *    depth), ids, no half of a surrogate pair. Otherwise every later request would be refused.
 * WIRE-FORM-6 Opaque fields return verbatim, and only to the model that they came from. None replaces a field of the protocol.
 * WIRE-FORM-7 A model that checks signatures gets one with each answer that has calls: its own, or the one for other models' calls.
 */

export interface WireForm {
  /** The role for `system` messages of the view. */
  readonly instructionsAs: 'system' | 'developer';
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
  /** The dialect and model that get their opaque fields back. Absent: none. */
  readonly boundTo?: string;
}

/** The view as it is. */
export const PLAIN_FORM: WireForm = {
  instructionsAs: 'system',
  mergeMessages: false,
  sendReasoning: 'never',
  callIds: 'plain',
  emptyAnswers: 'sent',
  afterResults: 'anything',
  unsignedCalls: 'plain',
};

/** A wire message, its source entries, and its kind (several kinds are joined with `+`). */
export interface WirePart {
  readonly kind: string;
  readonly entries: readonly number[];
  readonly message: WireMessage;
}

/** Input of the fold: a part of the view, or a message before the history. */
export interface FormInput {
  readonly kind: PartKind;
  readonly entries: readonly number[];
  readonly message: ViewMessage | WireMessage;
}

interface FormStep {
  /** Messages that are now complete (WIRE-FORM-2), in order. */
  readonly closed: readonly WirePart[];
  /** The message that may still grow; null: no input yet. */
  readonly open: WirePart | null;
}

/** Separates merged messages; the same line in content is escaped (MARKER-1). */
const NEXT_MESSAGE_MARKER = '=== NEXT MESSAGE ===';

/** Inserted where a provider requires an assistant message after a result. */
const BRIDGE: WirePart = {
  kind: 'bridge',
  entries: [],
  message: { role: 'assistant', content: 'Understood.' },
};

/** Some reasoning models refuse a call whose reasoning is missing or empty. */
const NO_REASONING = ' ';

/** The value that Gemini documents for calls that it did not make. */
const FOREIGN_CALL = { extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } } };

function takePart(open: WirePart | null, input: FormInput, form: WireForm): FormStep {
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

/** Encodes a list, which continues after `open`. */
export function takeParts(
  open: WirePart | null,
  inputs: readonly (FormInput | ViewPart)[],
  form: WireForm,
): FormStep {
  const closed: WirePart[] = [];
  let last = open;
  for (const input of inputs) {
    const step = takePart(last, input, form);
    closed.push(...step.closed);
    last = step.open;
  }
  return { closed, open: last };
}

const MAY_FOLLOW_RESULT: ReadonlySet<string> = new Set(['assistant', 'tool']);

function isEmptyAnswer({ role, content, tool_calls: calls }: ViewMessage | WireMessage): boolean {
  return role === 'assistant' && !calls?.length && (content ?? '').trim() === '';
}

function wirePart({ kind, entries, message }: FormInput, before: WirePart | null, form: WireForm): WirePart {
  const { role, content, tool_calls: calls, tool_call_id: id } = message;
  const reasoning = reasoningOf(message, before, form);
  const opaque = 'opaque' in message && message.opaque?.boundTo === form.boundTo ? message.opaque : undefined;
  const wire: WireMessage = {
    ...outside(MESSAGE_FIELDS, opaque?.message),
    role: role === 'system' ? form.instructionsAs : role,
    content: content === null ? null : wellFormed(content),
    ...(reasoning === undefined ? {} : { reasoning_content: wellFormed(reasoning) }),
    ...(calls === undefined
      ? {}
      : { tool_calls: calls.map((call, at) => wireCall(call, at, form, opaque?.calls?.[at])) }),
    ...(id === undefined ? {} : { tool_call_id: callId(id, form) }),
  };
  return { kind, entries, message: wire };
}

function reasoningOf(
  message: ViewMessage | WireMessage,
  before: WirePart | null,
  { sendReasoning }: WireForm,
): string | undefined {
  if (sendReasoning === 'never' || message.role !== 'assistant') return undefined;
  const reasoning = 'reasoning' in message ? message.reasoning : undefined;
  if (message.tool_calls?.length) return reasoning || NO_REASONING;
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

/** WIRE-FORM-5, WIRE-FORM-7 */
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

/** Fields that the protocol names; others are opaque. */
export const MESSAGE_FIELDS: ReadonlySet<string> = new Set([
  'role',
  'content',
  'reasoning_content',
  'tool_calls',
  'tool_call_id',
]);
export const CALL_FIELDS: ReadonlySet<string> = new Set(['id', 'type', 'function', 'name', 'arguments']);

/** WIRE-FORM-6: a log that was imported can contain any. */
function outside(known: ReadonlySet<string>, fields: OpaqueFields | null = null): OpaqueFields {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([name]) => !known.has(name)));
}

/** Some providers want a letter or `_` first. */
function wireName(name: string): string {
  const plain = name.replaceAll(/[^\w-]/g, '_');
  return (/^[a-z_]/i.test(plain) ? plain : `_${plain}`).slice(0, 64);
}

/** As the model wrote them, if every reader accepts that; else the result that follows says what was wrong. */
function wireArguments(given: string): string {
  const text = wellFormed(given);
  if (!readArguments(text).ok) return JSON.stringify({ unreadable: text });
  return text.trim() === '' ? '{}' : text.replaceAll(ESCAPE, wholeEscape);
}

/** A whole pair, half a pair, or any other escape of a JSON text. */
const ESCAPE = /\\(?:ud[89ab]..\\ud[c-f]..|u(d[89a-f]..)|.)/gi;

function wholeEscape(given: string, half: string | undefined): string {
  return half === undefined ? given : '\\ufffd';
}

/** WIRE-FORM-3: earlier text may be merged into a message with calls, but later messages may not. */
function canMerge(open: WireMessage, next: WireMessage): boolean {
  return open.role === next.role && open.role !== 'tool' && !open.tool_calls?.length;
}

function merged(open: WirePart, next: WirePart): WirePart {
  const reasoning = [open.message.reasoning_content, next.message.reasoning_content]
    .filter((text) => text?.trim())
    .join('\n\n');
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
      content: joined(open.message, next.message),
      ...(sent === undefined ? {} : { reasoning_content: sent }),
      ...(next.message.tool_calls === undefined ? {} : { tool_calls: next.message.tool_calls }),
    },
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

/** WIRE-FORM-4: not needed between an agent's own messages, nor before or after another marker. */
function joined(open: WireMessage, next: WireMessage): string {
  const [before, after] = [open.content ?? '', next.content ?? ''];
  if (open.role === 'assistant') return [before, after].filter((text) => text !== '').join('\n\n');
  const lastLine = before.slice(before.lastIndexOf('\n') + 1);
  const isMarked = after.startsWith('=== ') || (lastLine.startsWith('=== ') && lastLine.endsWith(' ==='));
  return isMarked ? `${before}\n\n${after}` : `${before}\n\n${NEXT_MESSAGE_MARKER}\n\n${after}`;
}
