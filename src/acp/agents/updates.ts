import type { SessionUpdate, ToolCall, ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk';
import {
  differenceText,
  type FilePart,
  fileLine,
  keptReports,
  type ReportedCall,
} from '../../conversation/index.ts';
import { cut, isShallow, ParleyError } from '../../kernel/index.ts';
import { bytesOf, notKept, type SentFile, sentFile } from '../blocks.ts';
import type { OfferedTurn } from './turn.ts';

/**
 * Folds what a session reports during one turn.
 *
 * ACP-UPDATES-1 A call is known by its id; a later update replaces the fields that it has. An update of an unknown call begins it.
 * ACP-UPDATES-2 Reports are bounded: what exceeds the bound is left out (`keptReports`), and the calls after the last one are counted. Until
 *               the turn is over, all texts of it have at most `MOST_TEXT`: of what follows, only the status of a known call is taken.
 * ACP-UPDATES-3 Pictures, sound and files are kept once the turn is over, as files of the answer. What is not kept is named, with the reason.
 * ACP-UPDATES-4 A call of tools may end the turn, and then there is no answer: what the agent did before is reported with that call, except
 *               for files. What it says of these calls later is dropped.
 * ACP-UPDATES-5 A difference stays in the report of its call, also if only the request for the permission showed it: some agents replace
 *               it with a sentence.
 * ACP-UPDATES-6 Words before and after a call, of two messages and of two prompts are paragraphs of the answer: programs send no line break
 *               between them.
 */

/** Calls of one turn. */
const MOST_CALLS = 200;
/** UTF-16 units, in the live text. */
const LONGEST_TITLE = 200;

/** Files of one answer, and UTF-16 units of all that is sent for them: until the turn is over they are in memory. */
const MOST_FILES = 16;
const MOST_SENT = 64_000_000;

/** UTF-16 units that one turn holds: its text and thoughts, and what it reports of calls, without files. */
const MOST_TEXT = 16_000_000;
const LEFT_OUT = `[the agent sent more than ${MOST_TEXT / 1_000_000} MB of text: the rest is left out]`;

/** A call, with its arguments and output as texts. */
interface Call extends Pick<ToolCallUpdate, 'toolCallId' | 'title' | 'kind' | 'status' | 'content'> {
  readonly input?: string;
  readonly output?: string;
}

type Live = Pick<OfferedTurn, 'write' | 'think' | 'showCall'>;

export class Updates {
  readonly #live: Live;
  readonly #calls = new Map<string, Call>();
  /** Reported with a call of tools. */
  readonly #told = new Set<string>();
  readonly #files: SentFile[] = [];
  #sent = 0;
  #uncounted = 0;
  #held = 0;
  #isFull = false;
  #text = '';
  #isMessageOver = false;
  #messageId: string | undefined;
  #thoughts = '';

  /** `before`: of the same turn, when it was offered before. */
  constructor(live: Live, before?: Updates) {
    this.#live = live;
    if (!before) return;
    for (const [id, call] of before.#calls) this.#calls.set(id, call);
    for (const call of before.#calls.values()) this.#held += heldBy(call);
    for (const id of before.#told) this.#told.add(id);
  }

  take(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk': {
        const block = this.#bounded(update.content);
        const file = sentFile(block);
        if (file) return void this.#files.push(file);
        const text = this.#breakBefore(update.messageId) + shown(block);
        if (!this.#hold(text.length)) return;
        this.#text += text;
        this.#live.write(text);
        return;
      }
      case 'agent_thought_chunk': {
        const text = shown(update.content);
        if (!this.#hold(text.length)) return;
        this.#thoughts += text;
        this.#live.think(text);
        return;
      }
      case 'tool_call':
      case 'tool_call_update':
        this.#takeCall(update);
    }
  }

  #takeCall(update: ToolCall | ToolCallUpdate): void {
    if (this.#told.has(update.toolCallId)) return;
    const known = this.#calls.get(update.toolCallId);
    if (!known && this.#calls.size + this.#told.size >= MOST_CALLS) {
      this.#uncounted += 1;
      return;
    }
    if (!known) this.endMessage();
    if (update.title && update.title !== known?.title)
      this.#live.showCall(update.toolCallId, cut(update.title, LONGEST_TITLE));
    const content = update.content?.map((one) =>
      one.type === 'content' ? { ...one, content: this.#bounded(one.content) } : one,
    );
    const isDiffless = content?.every(({ type }) => type !== 'diff') === true;
    const shownBefore = isDiffless ? (known?.content?.filter(({ type }) => type === 'diff') ?? []) : [];
    const { toolCallId, title, kind, status, rawInput, rawOutput } = update;
    const given = {
      toolCallId,
      title,
      kind,
      status,
      content: content && [...shownBefore, ...content], // ACP-UPDATES-5
      input: rawInput === null ? undefined : jsonText(rawInput),
      output: outputText(rawOutput),
    };
    const isGiven = ([, value]: [string, unknown]) => value !== null && value !== undefined;
    const call: Call = { ...known, ...Object.fromEntries(Object.entries(given).filter(isGiven)), toolCallId };
    if (this.#hold(heldBy(call) - (known ? heldBy(known) : 0))) this.#calls.set(toolCallId, call);
    else if (known) this.#calls.set(toolCallId, { ...known, status: status ?? known.status });
    else this.#uncounted += 1;
  }

  /** What comes next is another paragraph (ACP-UPDATES-6). */
  endMessage(): void {
    this.#isMessageOver = true;
  }

  #breakBefore(messageId: string | null | undefined): string {
    const isSame = !this.#isMessageOver && (messageId ?? this.#messageId) === this.#messageId;
    this.#isMessageOver = false;
    this.#messageId = messageId ?? undefined;
    return isSame || this.#text === '' ? '' : '\n\n'.slice(/\n{0,2}$/.exec(this.#text)?.[0].length);
  }

  /** False: it is left out (ACP-UPDATES-2). */
  #hold(units: number): boolean {
    const fits = units <= 0 || this.#held + units <= MOST_TEXT;
    if (fits) this.#held += units;
    else this.#isFull = true;
    return fits;
  }

  /** The text since the last call, which begins anew. */
  takeText(): string {
    const text = this.#text;
    this.#text = '';
    this.#held -= text.length;
    return text;
  }

  /** Those of a turn that fails: their files are only named. */
  get calls(): ReportedCall[] {
    return keptReports(
      [...this.#calls.values()].map((call) => reported(call, call.content?.map(contentText))),
    );
  }

  /** ACP-UPDATES-4 */
  takeEnded(): ReportedCall[] {
    const ended = [...this.#calls.values()].filter(
      ({ status, content = [] }) =>
        (status === 'completed' || status === 'failed') && !content?.some(hasFile),
    );
    for (const call of ended) {
      const { toolCallId } = call;
      this.#held -= heldBy(call) - toolCallId.length;
      this.#calls.delete(toolCallId);
      this.#told.add(toolCallId);
    }
    return ended.map((call) => reported(call, call.content?.map(contentText)));
  }

  /** A file beyond `MOST_SENT` is named at once. */
  #bounded(block: Block): Block {
    const file = sentFile(block);
    if (file === null) return block;
    this.#sent += file.content.length;
    if (this.#sent <= MOST_SENT) return block;
    return { type: 'text', text: notKept(file, 'the answer has too many files') };
  }

  /** Call when the turn is over (ACP-UPDATES-3). */
  async reported(keep: Keep) {
    const kept = new KeptFiles(keep);
    const notes: string[] = [];
    for (const file of this.#files) {
      const { line, isKept } = await kept.add(file);
      if (!isKept) notes.push(line);
    }
    const calls: ReportedCall[] = [];
    for (const call of this.#calls.values()) calls.push(await reportOf(call, kept));
    if (this.#uncounted > 0)
      calls.push({ title: `${this.#uncounted} more calls`, kind: 'other', status: 'unknown' });
    if (this.#isFull) notes.push(LEFT_OUT);
    const text = [this.#text, ...notes].filter((part) => part !== '').join('\n\n');
    return { text, files: kept.files, thoughts: this.#thoughts, calls: keptReports(calls) };
  }
}

type Keep = (bytes: Uint8Array, about: Pick<SentFile, 'name' | 'mediaType'>) => Promise<FilePart>;

class KeptFiles {
  readonly files: FilePart[] = [];
  readonly #keep: Keep;

  constructor(keep: Keep) {
    this.#keep = keep;
  }

  /** The line that stands for it. */
  async add(sent: SentFile): Promise<{ readonly line: string; readonly isKept: boolean }> {
    const { content: _content, isBase64: _isBase64, ...about } = sent;
    const refused = (why: string) => ({ line: notKept(sent, why), isKept: false });
    if (this.files.length >= MOST_FILES) return refused(`an answer has at most ${MOST_FILES} files`);
    const bytes = bytesOf(sent);
    if (bytes === null) return refused('its base64 is broken');
    try {
      const file = await this.#keep(bytes, about);
      if (this.files.every(({ sha256 }) => sha256 !== file.sha256)) this.files.push(file);
      return { line: fileLine(file), isKept: true };
    } catch (error) {
      return refused(
        error instanceof ParleyError ? `${error.code}: ${error.message}` : 'it could not be stored',
      );
    }
  }
}

async function reportOf(call: Call, kept: KeptFiles): Promise<ReportedCall> {
  const parts: string[] = [];
  for (const one of call.content ?? []) {
    const file = fileIn(one);
    parts.push(file ? (await kept.add(file)).line : contentText(one));
  }
  return reported(call, parts);
}

const fileIn = (one: ToolCallContent) => (one.type === 'content' ? sentFile(one.content) : null);
const hasFile = (one: ToolCallContent) => fileIn(one) !== null;

/** Its file data is bounded by `MOST_SENT`. */
function heldBy({ toolCallId, title, input = '', output = '', content }: Call): number {
  const texts = (content ?? []).map((one) => {
    if (one.type === 'diff') return one.path.length + (one.oldText?.length ?? 0) + one.newText.length;
    return hasFile(one) ? 0 : contentText(one).length;
  });
  const units = toolCallId.length + (title?.length ?? 0) + input.length + output.length;
  return texts.reduce((sum, length) => sum + length + ITEM, units);
}

/** What an empty item of a list takes. */
const ITEM = 100;

function reported(call: Call, parts: readonly string[] = []): ReportedCall {
  const result = parts.join('\n') || call.output;
  return {
    title: call.title ?? call.toolCallId,
    kind: call.kind ?? 'other',
    status: call.status ?? 'pending',
    ...(call.input !== undefined && { arguments: call.input }),
    ...(result && { result }),
  };
}

/** What a person reads of a call before it is allowed, and of its result. */
export function contentText(content: ToolCallContent): string {
  if (content.type === 'diff') {
    const { path, oldText, newText } = content;
    return differenceText(path, oldText ?? '', newText);
  }
  return content.type === 'content' ? shown(content.content) : `[terminal ${content.terminalId}]`;
}

function outputText(output: unknown): string | undefined {
  if (output === undefined || output === null) return undefined;
  return typeof output === 'string' ? output : jsonText(output);
}

/** `JSON.stringify` is recursive in some versions of Node, and `JSON.parse` is not. */
function jsonText(value: unknown): string | undefined {
  return isShallow(value) ? JSON.stringify(value) : '"(nested too deeply to be shown)"';
}

type Block = Extract<ToolCallContent, { type: 'content' }>['content'];

/** What is not text is named. */
function shown(block: Block): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'resource_link':
      return `[link to ${block.name} (${block.uri})]`;
    case 'resource':
      return 'text' in block.resource ? block.resource.text : `[${block.resource.uri}]`;
    default:
      return `[${block.type}, ${block.mimeType}]`;
  }
}
