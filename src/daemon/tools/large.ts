import { firstCodePoints, PREVIEW_LENGTH } from '../../conversation/index.ts';
import { messageOf, type NewId, sizeOf } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
/**
 * Stores a text that is too large for an entry as a file; the entry gets a preview that names the file. An entry larger
 * than the broker's payload would reach no follower.
 *
 * LARGE-1  The file is durable before an entry names it. A text that cannot be stored is cut, and the preview says so.
 * LARGE-3  A call whose arguments became a file is refused, never run with a part of them (`hasReplacedArguments`).
 */

/** Bytes of UTF-8. Longer tool results become a file. */
export const INLINE_BYTES = 51_200;
/** The part of the broker's payload for the text; the rest is for the other fields and the envelope. */
const PAYLOAD_SHARE = 0.9;

/** The only argument of a call whose arguments became a file (LARGE-3). */
export const TOO_LARGE_FIELD = 'arguments_too_large';

export interface Kept {
  readonly text: string;
  /** The id of the file and of the entry; absent when it could not be stored. */
  readonly id?: string;
  readonly fullOutputPath?: string;
}

export interface OutputContext {
  readonly store: Pick<ConversationStore, 'toolRecords'>;
  readonly newId: NewId;
  /** The limit of the broker, in bytes. */
  readonly maxPayload: number;
}

/** A tool result as it is written to the log. */
export async function keptResult(
  conversation: string,
  content: string,
  keeper: OutputContext,
): Promise<Kept | { readonly error: string }> {
  const fits = Buffer.byteLength(content) <= INLINE_BYTES && sizeOf(content) <= roomOf(keeper);
  if (fits) return { text: content };
  try {
    return await keep(conversation, content, keeper);
  } catch (error) {
    return { error: messageOf(error) };
  }
}

/** Whether an entry with these fields fits the broker's payload. */
export function fitsPayload(fields: object, keeper: Pick<OutputContext, 'maxPayload'>): boolean {
  return sizeOf(fields) <= roomOf(keeper);
}

export function hasReplacedArguments(given: Readonly<Record<string, unknown>>): boolean {
  return Object.hasOwn(given, TOO_LARGE_FIELD);
}

async function keep(conversation: string, content: string, keeper: OutputContext): Promise<Kept> {
  const id = keeper.newId();
  await keeper.store.toolRecords.saveOutput(conversation, id, content);
  const fullOutputPath = `@state/logs/tool-results/${conversation}/${id}.json`;
  return { text: `${preview(content)}\n[Full output: ${fullOutputPath}]`, id, fullOutputPath };
}

export async function keepOrCut(conversation: string, content: string, keeper: OutputContext): Promise<Kept> {
  try {
    return await keep(conversation, content, keeper);
  } catch (error) {
    const bytes = Buffer.byteLength(content);
    return {
      text: `${preview(content)}\n[cut here: all ${bytes} bytes were too large, and could not be kept: ${messageOf(error)}]`,
    };
  }
}

function preview(content: string): string {
  return firstCodePoints(content, PREVIEW_LENGTH);
}

export function roomOf({ maxPayload }: Pick<OutputContext, 'maxPayload'>): number {
  return maxPayload * PAYLOAD_SHARE;
}
