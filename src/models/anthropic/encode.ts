import {
  type CachePoints,
  contentMark,
  type Dialect,
  messageTokens,
  type Opening,
  type RequestSettings,
  type WireForm,
  type WirePart,
} from '../../agents/dialect-port.ts';
import type { WireFile, WireMessage, WireTool } from '../../agents/model-port.ts';
import {
  type AnswerBlock,
  estimateTokens,
  type ViewMessage,
  type ViewPart,
} from '../../conversation/index.ts';
import { isRecord, wellFormed } from '../../kernel/index.ts';
import {
  documentName,
  FILES_OF_REQUEST,
  IMAGE_TYPES,
  ownBlocks,
  PDF,
  wireArguments,
  wireName,
} from '../sent.ts';

/**
 * Encodes messages of the view for Anthropic's Messages API.
 *
 * MESSAGES-1 Roles alternate, and the first is the user's: consecutive parts of one role share one message, as its content blocks.
 * MESSAGES-2 No block is blank, and no answer ends with reasoning: the API refuses both.
 * MESSAGES-3 Reasoning is sent only with its signature, unchanged and in its place, to the model that signed it.
 * MESSAGES-4 At most four cache points, each on a block that the next request of the agent has, too.
 * MESSAGES-5 With a budget for reasoning the API refuses a loop of tool calls whose first answer does not begin with reasoning. The
 *    requests in a loop that another model began have none, so `thinking` is the last field of a body.
 * MESSAGES-6 Newer models refuse reasoning if anything before it has changed. A view changes: notices are of one turn, and a reduction
 *    words the history anew. The API is asked to leave out such reasoning instead.
 */
interface MessagesState {
  /** The role of the open message; null: there is none yet. */
  readonly role: 'user' | 'assistant' | null;
  /** What the answers since the last words of others begin with; null: there are none. */
  readonly loop: SaidBlock['type'] | null;
  readonly thinking: unknown;
}

/** The API counts the base64 of a picture: 5 MiB. */
const IMAGE_BYTES = (5 * 1024 * 1024 * 3) / 4;
/** A larger picture is scaled down to this. */
const IMAGE_TOKENS = 1_600;

export const anthropic: Dialect<MessagesState> = {
  files: {
    ...FILES_OF_REQUEST,
    kinds: {
      image: {
        types: IMAGE_TYPES,
        maxBytes: IMAGE_BYTES,
        maxSide: 8_000,
        tokens: ({ width, height }) =>
          width && height ? Math.min(IMAGE_TOKENS, (width * height) / 750) : IMAGE_TOKENS,
      },
      pdf: PDF,
    },
  },
  fields: fieldsOf,
  answering: (fields, schema) => ({
    ...fields,
    output_config: { ...Object(fields.output_config), format: { type: 'json_schema', schema } },
  }),
  choose({ demand, isSerial }, { thinking }) {
    const mayDemand = thinking === undefined || (isRecord(thinking) && thinking.type === 'disabled'); // else the API refuses it
    const asked = (mayDemand && demand) || 'auto';
    const choice =
      typeof asked === 'object' ? { type: 'tool', ...asked } : { type: asked === 'auto' ? 'auto' : 'any' };
    return { tool_choice: { ...choice, ...(isSerial && { disable_parallel_tool_use: true }) } };
  },
  begin({ fields, tools, prefix }: Opening, form) {
    const point = cacheControl(form);
    const { thinking, ...others } = fields;
    const body = {
      ...others,
      ...(prefix.trim() === '' ? {} : { system: [{ type: 'text', text: wellFormed(prefix), ...point }] }),
      ...(tools.length === 0
        ? {}
        : { tools: tools.map((tool, at) => toolOf(tool, tools[at + 1] ? {} : point)) }),
    };
    return {
      text: `${JSON.stringify(body).slice(0, -1)},"messages":[`,
      parts: [prefixPart(prefix)],
      state: { role: null, loop: null, thinking },
    };
  },
  take(state, input, form) {
    const said = input.message.role === 'assistant' ? answerOf(input, form) : wordsOf(input);
    if (said.blocks.length === 0) return { parts: [], state };
    const { role } = said;
    const next = { ...state, role, loop: loopAfter(state, said) };
    if (state.role !== null || role === 'user') return { parts: [partOf(said, state.role)], state: next };
    return { parts: [partOf(OPENING, null), partOf(said, 'user')], state: next };
  },
  end({ role, loop, thinking }) {
    const isUnsigned = loop !== null && loop !== 'thinking';
    const sent = isUnsigned && isRecord(thinking) && thinking.type === 'enabled' ? OFF : thinking;
    const last = sent === undefined ? '' : `,"thinking":${JSON.stringify(sent)}`;
    return { parts: [], text: `${role === null ? ']' : ']}]'}${last}}` };
  },
  cachePoints,
};

const OFF = { type: 'disabled' };

function fieldsOf(settings: RequestSettings): Readonly<Record<string, unknown>> {
  const { model, stream, maxOutputTokens, temperature, topP, stop } = settings;
  return {
    model,
    max_tokens: maxOutputTokens,
    stream,
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(stop === undefined ? {} : { stop_sequences: typeof stop === 'string' ? [stop] : stop }),
    ...thinkingOf(settings),
  };
}

/** MESSAGES-6: from Claude 5.1 on. A date is no version. */
export function bindsReasoning(model: string): boolean {
  const [, major = 0, minor = 0] = /^claude-[a-z]+-(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(model) ?? [];
  return Number(major) > 5 || (Number(major) === 5 && Number(minor) > 0);
}

function boundThinking(model: string, thinking: object | undefined) {
  if (!bindsReasoning(model) || thinking === OFF) return thinking && { thinking };
  return {
    thinking: { type: 'adaptive', ...thinking, block_binding: { prefix_mismatch_behavior: 'drop_block' } },
  };
}

/** A budget is the older form; without one the model decides how long it thinks, guided by the effort. */
function thinkingOf(settings: RequestSettings) {
  const { model, reasoningTokens = 0, reasoningEffort: effort, maxOutputTokens } = settings;
  const fits = reasoningTokens > 0 && reasoningTokens < maxOutputTokens; // not with the limit of an agent of another model
  const budget = fits ? { type: 'enabled', budget_tokens: reasoningTokens } : undefined;
  if (effort === undefined) return boundThinking(model, budget);
  if (effort === 'none') return boundThinking(model, OFF);
  return { ...boundThinking(model, budget ?? { type: 'adaptive' }), output_config: { effort } };
}

function toolOf({ function: { name, description, parameters, strict } }: WireTool, point: object) {
  return { name, description, input_schema: parameters, ...(strict && { strict }), ...point };
}

function cacheControl({ cacheTtl: ttl }: WireForm) {
  if (ttl === undefined) return {};
  return { cache_control: { type: 'ephemeral', ...(ttl === '5m' ? {} : { ttl }) } };
}

/** A part before its place is known. */
interface Said extends Pick<WirePart, 'kind' | 'entries' | 'message'> {
  readonly role: 'user' | 'assistant';
  readonly blocks: readonly SaidBlock[];
  /** Besides what `message` contains. */
  readonly opaqueTokens: number;
}

interface SaidBlock {
  readonly type: 'text' | 'file' | 'thinking' | 'tool_use' | 'tool_result' | 'opaque';
  readonly json: string;
}

/** MESSAGES-5 */
function loopAfter({ loop }: MessagesState, { role, blocks }: Said): MessagesState['loop'] {
  const [first] = blocks;
  if (role === 'assistant') return loop ?? first?.type ?? null;
  return first?.type === 'tool_result' ? loop : null;
}

const CACHEABLE: ReadonlySet<string> = new Set(['text', 'file', 'tool_use', 'tool_result']);
/** They are in one turn only. */
const PASSING: ReadonlySet<string> = new Set(['away-block', 'marker']);

function partOf(
  { role, blocks, opaqueTokens, kind, entries, message }: Said,
  open: MessagesState['role'],
): WirePart {
  const before = open === role ? ',' : `${open === null ? '' : ']},'}{"role":"${role}","content":[`;
  const mayCache = CACHEABLE.has(blocks.at(-1)?.type ?? '') && !PASSING.has(kind);
  return {
    kind,
    entries,
    message,
    text: before + blocks.map(({ json }) => json).join(','),
    tokens: messageTokens(message) + opaqueTokens,
    blocks: blocks.length,
    ...(mayCache ? { mayCache } : {}),
  };
}

function prefixPart(prefix: string): WirePart {
  const message: WireMessage = { role: 'system', content: wellFormed(prefix) };
  return { kind: 'prefix', entries: [], message, text: '', tokens: messageTokens(message) };
}

const BLANK = '(blank)';

/** What the agent is shown: of people, other agents and the system, and results of its calls. */
function wordsOf({ kind, entries, message: { role, content, files, tool_call_id: id } }: ViewPart): Said {
  const text = wellFormed(content ?? '');
  const common = { kind, entries, role: 'user', opaqueTokens: 0 } as const;
  if (role === 'tool' && id !== undefined) {
    const json = JSON.stringify({
      type: 'tool_result',
      tool_use_id: id,
      ...(text.trim() && { content: text }),
    });
    const message: WireMessage = { role, content: text, tool_call_id: id };
    return { ...common, message, blocks: [{ type: 'tool_result', json }] };
  }
  return wordsFrom(common, text.trim() === '' ? BLANK : text, files);
}

function wordsFrom(
  common: Omit<Said, 'message' | 'blocks'>,
  text: string,
  files?: readonly WireFile[],
): Said {
  const message: WireMessage = { role: 'user', content: text, ...(files && { files }) };
  const words = { type: 'text', json: JSON.stringify({ type: 'text', text }) } as const;
  return { ...common, message, blocks: [words, ...(files ?? []).map(fileBlock)] };
}

function fileBlock(file: WireFile): SaidBlock {
  const source = `{"type":"base64","media_type":"${file.mediaType}","data":"${contentMark(file)}"}`;
  const json = IMAGE_TYPES.includes(file.mediaType)
    ? `{"type":"image","source":${source}}`
    : `{"type":"document","source":${source},"title":${JSON.stringify(documentName(file))}}`;
  return { type: 'file', json };
}

/** Before an answer that nothing precedes (MESSAGES-1). */
const OPENING = wordsFrom({ kind: 'bridge', entries: [], role: 'user', opaqueTokens: 0 }, 'Begin.');

/** No blocks: the answer is left out. */
function answerOf({ kind, entries, message }: ViewPart, form: WireForm): Said {
  const own = ownBlocks(message, form);
  const all = own.flatMap((block) => sentBlock(block, message));
  const blocks = all.slice(0, all.findLastIndex(({ type }) => type !== 'thinking') + 1); // MESSAGES-2
  const thoughts = own
    .map((block) => (block.type === 'reasoning' && block.opaque ? block.text : ''))
    .join('');
  const { content, tool_calls: calls } = message;
  return {
    kind,
    entries,
    role: 'assistant',
    blocks,
    message: {
      role: 'assistant',
      content: content === null ? null : wellFormed(content),
      ...(thoughts === '' ? {} : { reasoning_content: thoughts }),
      ...(calls === undefined
        ? {}
        : {
            tool_calls: calls.map((call) => ({
              ...call,
              function: {
                name: wireName(call.function.name),
                arguments: wireArguments(call.function.arguments),
              },
            })),
          }),
    },
    opaqueTokens: own.reduce(
      (sum, { opaque }) => sum + (opaque ? estimateTokens(JSON.stringify(opaque)) : 0),
      0,
    ),
  };
}

/** DIALECT-6: the blocks that this encoder writes, and those that only a user may write. */
const OWN_TYPES: ReadonlySet<string> = new Set([
  ...['text', 'thinking', 'tool_use', 'tool_result'],
  ...['image', 'document', 'search_result', 'container_upload'],
]);

function sentBlock(block: AnswerBlock, { tool_calls: calls }: ViewMessage): SaidBlock[] {
  switch (block.type) {
    case 'text': {
      const { type } = block;
      const text = wellFormed(block.text);
      return text.trim() === '' ? [] : [{ type, json: JSON.stringify({ type, text }) }];
    }
    case 'reasoning': {
      const signature = block.opaque?.signature;
      if (typeof signature !== 'string') return [];
      const type = 'thinking';
      return [{ type, json: JSON.stringify({ type, thinking: wellFormed(block.text), signature }) }];
    }
    case 'call': {
      const call = calls?.[block.position];
      if (!call) return [];
      const name = JSON.stringify(wireName(call.function.name));
      const input = wireArguments(call.function.arguments); // as the model wrote it: JSON.stringify would change numbers
      const json = `{"type":"tool_use","id":${JSON.stringify(call.id)},"name":${name},"input":${input}}`;
      return [{ type: 'tool_use', json }];
    }
    case 'opaque': {
      const { cache_control: _, ...opaque } = block.opaque;
      if (typeof opaque.type !== 'string' || OWN_TYPES.has(opaque.type)) return [];
      const type = opaque.type === 'redacted_thinking' ? 'thinking' : 'opaque';
      return [{ type, json: JSON.stringify(opaque) }];
    }
    default:
      return block satisfies never;
  }
}

/** The provider finds what it has cached at most 20 blocks before a point; less, as the length of a trigger is not known here. */
const LOOK_BACK = 16;

/**
 * Two points; `begin` sets those after the tools and the system prompt. In a turn with steps: after the last of them, as the next
 * request contains them, and after the newest settled part, where the agent's next turn continues. In a new turn: there, and before
 * the agent's last answers if the history grew so much since that the provider would not find the point that was there; otherwise
 * after the last reduction, in case the history after it was worded anew.
 */
function cachePoints(parts: readonly WirePart[], settled: number, form: WireForm): CachePoints {
  const text = JSON.stringify(cacheControl(form)).replace(/^\{/, ',').slice(0, -1);
  if (form.cacheTtl === undefined) return { at: [], text };
  const newest = lastPoint(parts, settled);
  const hasSteps = parts.findIndex(({ kind }, at) => at >= settled && kind === 'turn') >= 0;
  const at = new Set(hasSteps ? pointsInTurn(parts, newest) : [pointOfBefore(parts, newest), newest]);
  return { at: [...at].filter((place) => place >= 0).sort((one, other) => one - other), text };
}

/** A step with many blocks would hide the point after the step before it. */
function pointsInTurn(parts: readonly WirePart[], newest: number): number[] {
  const step = parts.findLastIndex(({ message }) => message.role === 'assistant');
  const isLong = blocksFrom(parts, step, parts.length) > LOOK_BACK;
  return [isLong ? lastPoint(parts, step) : newest, lastPoint(parts, parts.length)];
}

function pointOfBefore(parts: readonly WirePart[], newest: number): number {
  const answers = answersBefore(parts, newest);
  if (answers > 0 && blocksFrom(parts, answers, newest + 1) > LOOK_BACK) return lastPoint(parts, answers);
  return parts.findLastIndex(({ kind }) => kind === 'summary');
}

function blocksFrom(parts: readonly WirePart[], from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) count += parts[at]?.blocks ?? 0;
  return count;
}

/** Where the agent's last answers and their results begin; 0: it has given none. */
function answersBefore(parts: readonly WirePart[], newest: number): number {
  const isOwn = (at: number) => ['assistant', 'tool'].includes(parts[at]?.message.role ?? '');
  let at = newest;
  while (at > 0 && !isOwn(at)) at--;
  while (at > 0 && isOwn(at - 1)) at--;
  return at;
}

/** Before the place `end`; -1: there is none. */
function lastPoint(parts: readonly WirePart[], end: number): number {
  let at = end - 1;
  while (at >= 0 && !parts[at]?.mayCache) at--;
  return at;
}
