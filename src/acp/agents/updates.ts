import type { SessionUpdate, ToolCall, ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk';
import { differenceText, keptReports } from '../../conversation/index.ts';
import { cut } from '../../kernel/index.ts';
import type { OfferedTurn, ReportedCall } from './turn.ts';

/**
 * Folds what a session reports during one turn.
 *
 * ACP-UPDATES-1 A call is known by its id; a later update replaces the fields that it has. An update of an unknown call begins it.
 * ACP-UPDATES-2 Reports are bounded: what exceeds the bound is left out (`keptReports`), and the calls after the last one are counted.
 */

/** Calls of one turn. */
const MOST_CALLS = 200;
/** UTF-16 units, in the live text. */
const LONGEST_TITLE = 200;

export interface Reported {
  readonly text: string;
  readonly thoughts: string;
  readonly calls: readonly ReportedCall[];
}

type Live = Pick<OfferedTurn, 'write' | 'think' | 'showCall'>;

export class Updates {
  readonly #live: Live;
  readonly #calls = new Map<string, ToolCallUpdate>();
  #uncounted = 0;
  #text = '';
  #thoughts = '';

  constructor(live: Live) {
    this.#live = live;
  }

  take(update: SessionUpdate): void {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk': {
        const text = shown(update.content);
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
    const known = this.#calls.get(update.toolCallId);
    if (!known && this.#calls.size >= MOST_CALLS) {
      this.#uncounted += 1;
      return;
    }
    if (update.title && update.title !== known?.title)
      this.#live.showCall(update.toolCallId, cut(update.title, LONGEST_TITLE));
    const given = Object.entries(update).filter(([, value]) => value !== null && value !== undefined);
    this.#calls.set(update.toolCallId, { ...known, ...Object.fromEntries(given) } as ToolCallUpdate);
  }

  /** The text since the last call, which begins anew. */
  takeText(): string {
    const text = this.#text;
    this.#text = '';
    return text;
  }

  get reported(): Reported {
    const calls = [...this.#calls.values()].map(reportOf);
    if (this.#uncounted > 0)
      calls.push({ title: `${this.#uncounted} more calls`, kind: 'other', status: 'unknown' });
    return { text: this.#text, thoughts: this.#thoughts, calls: keptReports(calls) };
  }
}

function reportOf(call: ToolCallUpdate): ReportedCall {
  const result = call.content?.map(contentText).join('\n') || outputText(call.rawOutput);
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

/** What is not text is named (ACP-UPDATES-1). */
function shown(block: Block): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'resource_link':
      return `[link to ${block.name} (${block.uri})]`;
    case 'resource':
      return 'text' in block.resource ? block.resource.text : `[${block.resource.uri}: not kept]`;
    default:
      return `[${block.type}, ${block.mimeType}: not kept]`;
  }
}
