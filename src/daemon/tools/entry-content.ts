import {
  type Answer,
  type CallOutcome,
  type FilePart,
  firstCodePoints,
  outputPath,
  PREVIEW_LENGTH,
  showBytes,
} from '../../conversation/index.ts';
import { messageOf, type NewId, ParleyError, sizeOf } from '../../kernel/index.ts';
import type { BlobFacts, ConversationStore } from '../../persistence/index.ts';

/**
 * What an entry may contain. A text that is too large for it, of a tool or a model, becomes a file, and the entry gets a preview
 * that names the file: an entry larger than the broker's payload would reach no follower. The files that an entry names are
 * stored, and within the limit of its conversation.
 *
 * LARGE-1  The file is durable before an entry names it. A text that cannot be stored is cut, and the preview says so.
 * LARGE-3  A call whose arguments became a file is refused, never run with a part of them (`hasReplacedArguments`).
 */

/** Bytes of UTF-8. Longer tool results become a file. */
export const INLINE_BYTES = 51_200;
/** The part of the broker's payload for the text; the rest is for the other fields and the envelope. */
const PAYLOAD_SHARE = 0.9;

/** The only argument of a call whose arguments became a file (LARGE-3). */
const TOO_LARGE_FIELD = 'arguments_too_large';

interface Kept {
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

export function fitsPayload(fields: object, keeper: Pick<OutputContext, 'maxPayload'>): boolean {
  return sizeOf(fields) <= roomOf(keeper);
}

export function hasReplacedArguments(given: Readonly<Record<string, unknown>>): boolean {
  return Object.hasOwn(given, TOO_LARGE_FIELD);
}

async function keep(conversation: string, content: string, keeper: OutputContext): Promise<Kept> {
  const id = keeper.newId();
  await keeper.store.toolRecords.saveOutput(conversation, id, content);
  const fullOutputPath = outputPath(conversation, id);
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

/** The limit of the opaque fields of an answer, as JSON. */
const OPAQUE_BYTES = 262_144;
/** A preview of a shorter text would save nothing. */
const MIN_KEPT_LENGTH = 1_000;
/** Longer than the name of any tool. */
const MAX_NAME = 256;

/**
 * The report of a model call as it is written to the log: texts that are too large for an entry become files.
 *
 * LARGE-2  Only as many texts of an answer become files as necessary, the largest first.
 * LARGE-4  Opaque fields cannot be cut: if they are too large, the entry has their size instead.
 * LARGE-5  An append may have a text twice, for example in the result for the agent that asked. If it is too large for the
 *          store, the report is made again for half of the room, until it fits.
 * LARGE-6  A report that does not fit without its long texts, for example for very many calls, is the failure of the turn instead.
 *
 * `hasAttached`: the turn has files for its next message.
 */
export async function keptReport(
  conversation: string,
  command: CallOutcome,
  keeper: OutputContext & RoomContext,
  hasAttached = false,
): Promise<CallOutcome> {
  if (command.type === 'model-answered') {
    const answered = await withStoredFiles(conversation, command, keeper);
    if (answered.type !== 'model-answered') return answered;
    return { ...answered, answer: await keptAnswer(conversation, answered.answer, keeper, hasAttached) };
  }
  if (sizeOf(command) <= roomOf(keeper)) return command;
  return { ...command, partial: (await keepOrCut(conversation, command.partial, keeper)).text };
}

type Answered = Extract<CallOutcome, { type: 'model-answered' }>;

/** An agent in another process names files by their hashes alone (PARTS-3). */
async function withStoredFiles(
  conversation: string,
  command: Answered,
  keeper: RoomContext,
): Promise<CallOutcome> {
  const { answer, ...report } = command;
  if (!answer.files?.length) return command;
  try {
    const files = await Promise.all(answer.files.map((file) => storedFile(file, keeper)));
    await requireRoom(conversation, files, keeper);
    return { ...command, answer: { ...answer, files } };
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error;
    const { code, message } = error;
    return { ...report, type: 'model-failed', code, message, partial: answer.content ?? '' };
  }
}

async function keptAnswer(
  conversation: string,
  answer: Answer,
  keeper: OutputContext,
  hasAttached: boolean,
): Promise<Answer> {
  const room = roomOf(keeper);
  const isRepeated = hasAttached || answer.files !== undefined; // the text is in the parts of the entry, too
  let kept = boundedBlocks(answer, room);
  while (sizeOf(kept) + (isRepeated ? sizeOf(kept.content) : 0) > room) {
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

export interface RoomContext {
  readonly store: Pick<ConversationStore, 'blobs'>;
  readonly team: { readonly files: { readonly maxBytesPerConversation: number } };
}

/** Throws `BLOB_QUOTA` if the conversation may not name these files, too. */
export async function requireRoom(
  conversation: string,
  files: readonly Pick<BlobFacts, 'sha256' | 'size'>[],
  { store, team }: RoomContext,
): Promise<void> {
  const most = team.files.maxBytesPerConversation;
  const known = await store.blobs.of(conversation);
  const sizes = new Map([...known, ...files].map(({ sha256, size }) => [sha256, size]));
  const bytes = [...sizes.values()].reduce((sum, size) => sum + size, 0);
  if (sizes.size === known.length || bytes <= most) return;
  const message = `the files of this conversation would have ${showBytes(bytes)}; ${showBytes(most)} are allowed`;
  throw new ParleyError('BLOB_QUOTA', message, {
    hint: 'raise blobs.maxBytesPerConversation in parley.yaml',
  });
}

/** What is stored of a file, with its name (PARTS-3). Throws `MISSING_BLOB`. */
export async function storedFile({ sha256, name }: FilePart, { store }: RoomContext): Promise<FilePart> {
  const facts = await store.blobs.facts(sha256);
  if (facts) return { type: 'file', ...facts, ...(name && { name }) };
  throw new ParleyError(
    'MISSING_BLOB',
    `the file ${sha256} is not stored: upload it before a message names it`,
    {
      hint: 'upload it (PUT /api/blobs, `parley say --file`, or upload() of the client), then send the message again',
    },
  );
}
