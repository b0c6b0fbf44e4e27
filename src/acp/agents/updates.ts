import type { SessionUpdate, ToolCall, ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk';
import { differenceText, type FilePart, fileLine, keptReports } from '../../conversation/index.ts';
import { cut, ParleyError } from '../../kernel/index.ts';
import { bytesOf, notKept, type SentFile, sentFile } from '../blocks.ts';
import type { OfferedTurn, ReportedCall } from './turn.ts';

/**
 * Folds what a session reports during one turn.
 *
 * ACP-UPDATES-1 A call is known by its id; a later update replaces the fields that it has. An update of an unknown call begins it.
 * ACP-UPDATES-2 Reports are bounded: what exceeds the bound is left out (`keptReports`), and the calls after the last one are counted.
 * ACP-UPDATES-3 Pictures, sound and files are kept once the turn is over, as files of the answer. What is not kept is named, with the reason.
 * ACP-UPDATES-4 A call of tools may end the turn, and then there is no answer: what the agent did before is reported with that call, except
 *               for files. What it says of these calls later is dropped.
 * ACP-UPDATES-5 A difference stays in the report of its call, also if only the request for the permission showed it: some agents replace
 *               it with a sentence.
 */

/** Calls of one turn. */
const MOST_CALLS = 200;
/** UTF-16 units, in the live text. */
const LONGEST_TITLE = 200;

/** Files of one answer, and UTF-16 units of all that is sent for them: until the turn is over they are in memory. */
const MOST_FILES = 16;
const MOST_SENT = 64_000_000;

export interface Reported {
  readonly text: string;
  readonly files: readonly FilePart[];
  readonly thoughts: string;
  readonly calls: readonly ReportedCall[];
}

type Live = Pick<OfferedTurn, 'write' | 'think' | 'showCall'>;

export class Updates {
  readonly #live: Live;
  readonly #calls = new Map<string, ToolCallUpdate>();
  /** Reported with a call of tools. */
  readonly #told = new Set<string>();
  readonly #files: SentFile[] = [];
  #sent = 0;
  #uncounted = 0;
  #text = '';
  #thoughts = '';

  /** `before`: of the same turn, when it was offered before. */
  constructor(live: Live, before?: Updates) {
    this.#live = live;
    if (!before) return;
    for (const [id, call] of before.#calls) this.#calls.set(id, call);
    for (const id of before.#told) this.#told.add(id);
  }

  take(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk': {
        const block = this.#bounded(update.content);
        const file = sentFile(block);
        if (file) return void this.#files.push(file);
        const text = shown(block);
        this.#text += text;
        this.#live.write(text);
        return;
      }
      case 'agent_thought_chunk': {
        const text = shown(update.content);
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
    if (update.title && update.title !== known?.title)
      this.#live.showCall(update.toolCallId, cut(update.title, LONGEST_TITLE));
    const content = update.content?.map((one) =>
      one.type === 'content' ? { ...one, content: this.#bounded(one.content) } : one,
    );
    const isDiffless = content?.every(({ type }) => type !== 'diff') === true;
    const shownBefore = isDiffless ? (known?.content?.filter(({ type }) => type === 'diff') ?? []) : [];
    const merged = content && [...shownBefore, ...content]; // ACP-UPDATES-5
    const given = Object.entries({ ...update, content: merged }).filter(
      ([, value]) => value !== null && value !== undefined,
    );
    this.#calls.set(update.toolCallId, { ...known, ...Object.fromEntries(given) } as ToolCallUpdate);
  }

  /** The text since the last call, which begins anew. */
  takeText(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }

  /** ACP-UPDATES-4 */
  takeEnded(): ReportedCall[] {
    const ended = [...this.#calls.values()].filter(
      ({ status, content = [] }) =>
        (status === 'completed' || status === 'failed') && !content?.some(hasFile),
    );
    for (const { toolCallId } of ended) {
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
  async reported(keep: Keep): Promise<Reported> {
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

async function reportOf(call: ToolCallUpdate, kept: KeptFiles): Promise<ReportedCall> {
  const parts: string[] = [];
  for (const one of call.content ?? []) {
    const file = fileIn(one);
    parts.push(file ? (await kept.add(file)).line : contentText(one));
  }
  return reported(call, parts);
}

const fileIn = (one: ToolCallContent) => (one.type === 'content' ? sentFile(one.content) : null);
const hasFile = (one: ToolCallContent) => fileIn(one) !== null;

function reported(call: ToolCallUpdate, parts: readonly string[] = []): ReportedCall {
  const result = parts.join('\n') || outputText(call.rawOutput);
  return {
    title: call.title ?? call.toolCallId,
    kind: call.kind ?? 'other',
    status: call.status ?? 'pending',
    ...(call.rawInput !== undefined && { arguments: JSON.stringify(call.rawInput) }),
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

function outputText(output: unknown): string {
  if (output === undefined || output === null) return '';
  return typeof output === 'string' ? output : JSON.stringify(output);
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
