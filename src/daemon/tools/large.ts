import { type Answer, type CallOutcome, firstCodePoints, PREVIEW_LENGTH } from '../../conversation/index.ts';
import { messageOf, type NewId, sizeOf } from '../../kernel/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
/**
 * Stores a text that is too large for an entry as a file; the entry gets a preview that names the file. An entry larger
 * than the broker's payload would reach no follower.
 *
 * LARGE-1  The file is durable before an entry names it. A text that cannot be stored is cut, and the preview says so.
 * LARGE-2  Only as many texts of an answer become files as necessary, the largest first.
 * LARGE-4  Opaque fields cannot be cut: if they are too large, the entry has their size instead.
 * LARGE-3  A call whose arguments became a file is refused, never run with a part of them (`hasReplacedArguments`).
 */

/** Bytes of UTF-8. Longer tool results become a file. */
export const INLINE_BYTES = 51_200;
/** The limit of the opaque fields of an answer, as JSON. */
const OPAQUE_BYTES = 262_144;
/** The part of the broker's payload for the text; the rest is for the other fields and the envelope. */
const PAYLOAD_SHARE = 0.9;
/** A preview of a shorter text would save nothing. */
const MIN_KEPT_LENGTH = 1_000;
/** Longer than the name of any tool. */
const MAX_NAME = 256;

const TOO_LARGE_FIELD = 'arguments_too_large';

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

/** The report of a model call, with texts that are too large replaced. */
export async function keptReport(
  conversation: string,
  command: CallOutcome,
  keeper: OutputContext,
): Promise<CallOutcome> {
  if (command.type === 'model-answered') {
    return { ...command, answer: await keptAnswer(conversation, command.answer, keeper) };
  }
  if (sizeOf(command.partial) <= roomOf(keeper)) return command;
  return { ...command, partial: (await keepOrCut(conversation, command.partial, keeper)).text };
}

/** Whether an entry with these fields fits the broker's payload. */
export function fitsPayload(fields: object, keeper: Pick<OutputContext, 'maxPayload'>): boolean {
  return sizeOf(fields) <= roomOf(keeper);
}

export function hasReplacedArguments(given: Readonly<Record<string, unknown>>): boolean {
  return Object.hasOwn(given, TOO_LARGE_FIELD);
}

async function keptAnswer(conversation: string, answer: Answer, keeper: OutputContext): Promise<Answer> {
  const room = roomOf(keeper);
  let kept = boundedBlocks(answer, room);
  while (sizeOf(kept) > room) {
    const largest = largestText(kept);
    if (largest === null) break;
    kept = largest.replaced(await keepOrCut(conversation, largest.text, keeper));
  }
  return kept;
}

/** LARGE-4 */
function boundedBlocks(answer: Answer, room: number): Answer {
  const { blocks } = answer;
  const omittedBytes = blocks === undefined ? 0 : sizeOf(blocks);
  if (blocks === undefined || omittedBytes <= Math.min(OPAQUE_BYTES, room / 2)) return answer;
  return { ...answer, blocks: { boundTo: blocks.boundTo, omittedBytes } };
}

interface LargeText {
  readonly text: string;
  replaced(kept: Kept): Answer;
}

function largestText(answer: Answer): LargeText | null {
  const { content, reasoning = '', toolCalls } = answer;
  const texts: LargeText[] = [
    {
      text: content ?? '',
      replaced: ({ text, ...file }) => ({ ...answer, ...file, content: text }),
    },
    { text: reasoning, replaced: ({ text }) => ({ ...answer, reasoning: text }) },
    ...toolCalls.flatMap(({ function: called }, place) => {
      const replaced = (by: Partial<typeof called>) => ({
        ...answer,
        toolCalls: toolCalls.map((one, at) =>
          at === place ? { ...one, function: { ...called, ...by } } : one,
        ),
      });
      return [
        {
          text: called.arguments,
          replaced: ({ text }: Kept) => replaced({ arguments: JSON.stringify({ [TOO_LARGE_FIELD]: text }) }),
        },
        {
          text: called.name,
          replaced: () => replaced({ name: firstCodePoints(called.name, MAX_NAME) }),
        },
      ];
    }),
  ];
  const [largest] = texts.sort((a, b) => b.text.length - a.text.length);
  return largest && largest.text.length > MIN_KEPT_LENGTH ? largest : null;
}

async function keep(conversation: string, content: string, keeper: OutputContext): Promise<Kept> {
  const id = keeper.newId();
  await keeper.store.toolRecords.saveOutput(conversation, id, content);
  const fullOutputPath = `@state/logs/tool-results/${conversation}/${id}.json`;
  return { text: `${preview(content)}\n[Full output: ${fullOutputPath}]`, id, fullOutputPath };
}

async function keepOrCut(conversation: string, content: string, keeper: OutputContext): Promise<Kept> {
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

function roomOf({ maxPayload }: Pick<OutputContext, 'maxPayload'>): number {
  return maxPayload * PAYLOAD_SHARE;
}
