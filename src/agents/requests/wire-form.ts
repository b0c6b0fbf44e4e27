import type { PartKind, ViewMessage, ViewPart } from '../../conversation/index.ts';
import { isJson } from '../../kernel/index.ts';
import type { WireMessage } from '../model-port.ts';

/**
 * The one place where a message of the view becomes a message on the wire: what providers differ in.
 *
 * WIRE-FORM-1 A pure fold: the same messages and the same form give the same wire messages, one by one.
 * WIRE-FORM-2 A wire message that was closed never changes again; only the last one is still open. So the bytes of a history
 *    grow at their end (ASSEMBLE-3), with merging too.
 * WIRE-FORM-3 Calls and their results are never merged, moved or left out: pairs stay pairs (L13).
 * WIRE-FORM-4 Where messages of several authors become one, a marker that no content can hold stands between them (L17).
 * WIRE-FORM-5 A call that providers do not take back (a name that is none, arguments that are no JSON) is sent in a form that they
 *    take: else what a model wrote once has every later request refused.
 */

export interface WireForm {
  /** The role of what the view says as `system`. */
  readonly instructionsAs: 'system' | 'developer';
  /** Neighbours of one role become one message. */
  readonly mergeMessages: boolean;
  /** `with-calls`: on answers that call tools, and on those that follow a result. */
  readonly sendReasoning: 'never' | 'with-calls' | 'always';
  /** `nine`: nine letters and digits. */
  readonly callIds: 'plain' | 'nine';
  /** Answers without a word and without a call. */
  readonly emptyAnswers: 'sent' | 'left-out';
  /** `assistant`: only an assistant message or another result may stand behind a result. */
  readonly afterResults: 'anything' | 'assistant';
}

/** The view as it is. */
export const PLAIN_FORM: WireForm = {
  instructionsAs: 'system',
  mergeMessages: false,
  sendReasoning: 'never',
  callIds: 'plain',
  emptyAnswers: 'sent',
  afterResults: 'anything',
};

/** A message on the wire, the entries it came from, and why it stands there (several kinds are joined with `+`). */
export interface WirePart {
  readonly kind: string;
  readonly entries: readonly number[];
  readonly message: WireMessage;
}

/** What the fold takes: a part of the view, or what stands before the history. */
export interface FormInput {
  readonly kind: PartKind;
  readonly entries: readonly number[];
  readonly message: ViewMessage | WireMessage;
}

export interface FormStep {
  /** Complete by now (WIRE-FORM-2), in order. */
  readonly closed: readonly WirePart[];
  /** What may still grow; null: nothing was taken yet. */
  readonly open: WirePart | null;
}

/** Between messages that became one; content that begins a line so is escaped (TEXT-TEXT-1). */
export const NEXT_MESSAGE_MARKER = '=== NEXT MESSAGE ===';

/** Said for the assistant where a provider wants it to have answered a result. */
const BRIDGE: WirePart = {
  kind: 'bridge',
  entries: [],
  message: { role: 'assistant', content: 'Understood.' },
};

/** Some thinking models refuse a call without reasoning, and an empty one too. */
const NO_REASONING = ' ';

export function takePart(open: WirePart | null, input: FormInput, form: WireForm): FormStep {
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

/** All of them at once. */
export function wireParts(inputs: readonly (FormInput | ViewPart)[], form: WireForm): readonly WirePart[] {
  const parts: WirePart[] = [];
  let open: WirePart | null = null;
  for (const input of inputs) {
    const step: FormStep = takePart(open, input, form);
    parts.push(...step.closed);
    open = step.open;
  }
  return open ? [...parts, open] : parts;
}

const MAY_FOLLOW_RESULT: ReadonlySet<string> = new Set(['assistant', 'tool']);

function isEmptyAnswer({ role, content, tool_calls: calls }: ViewMessage | WireMessage): boolean {
  return role === 'assistant' && !calls?.length && (content ?? '').trim() === '';
}

function wirePart({ kind, entries, message }: FormInput, before: WirePart | null, form: WireForm): WirePart {
  const { role, content, tool_calls: calls, tool_call_id: id } = message;
  const reasoning = reasoningOf(message, before, form);
  const wire: WireMessage = {
    role: role === 'system' ? form.instructionsAs : role,
    content,
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
    ...(calls === undefined ? {} : { tool_calls: calls.map((call) => wireCall(call, form)) }),
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

/** `c12_0` as nine letters and digits, another one for each place: six for the entry, two for the position. */
function callId(id: string, { callIds }: WireForm): string {
  const place = callIds === 'nine' ? PLAIN_ID.exec(id) : null;
  if (!place) return id;
  const [entry = '', position = ''] = place.slice(1).map((digits) => Number(digits).toString(36));
  return `c${entry.padStart(6, '0')}${position.padStart(2, '0')}`;
}

type WireCall = NonNullable<WireMessage['tool_calls']>[number];

/** WIRE-FORM-5: its result, right behind it, says what was wrong. */
function wireCall(call: WireCall, form: WireForm): WireCall {
  const { name, arguments: given } = call.function;
  const sound = {
    name: wireName(name),
    arguments: isJson(given) ? given : JSON.stringify({ unreadable: given }),
  };
  return { ...call, id: callId(call.id, form), function: sound };
}

function wireName(name: string): string {
  return name.replaceAll(/[^\w-]/g, '_').slice(0, 64) || '_';
}

/** WIRE-FORM-3: a message with calls takes words from before it, but nothing joins it from behind. */
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
      role: open.message.role,
      content: joined(open.message, next.message),
      ...(sent === undefined ? {} : { reasoning_content: sent }),
      ...(next.message.tool_calls === undefined ? {} : { tool_calls: next.message.tool_calls }),
    },
  };
}

/** WIRE-FORM-4: an agent's own words need no mark between them, nor does what begins with a marker or follows one. */
function joined(open: WireMessage, next: WireMessage): string {
  const [before, after] = [open.content ?? '', next.content ?? ''];
  if (open.role === 'assistant') return [before, after].filter((text) => text !== '').join('\n\n');
  const lastLine = before.slice(before.lastIndexOf('\n') + 1);
  const isMarked = after.startsWith('=== ') || (lastLine.startsWith('=== ') && lastLine.endsWith(' ==='));
  return isMarked ? `${before}\n\n${after}` : `${before}\n\n${NEXT_MESSAGE_MARKER}\n\n${after}`;
}
