import { type Answer, type CallOutcome, firstCodePoints } from '../../../conversation/index.ts';
import { ParleyError, sizeOf } from '../../../kernel/index.ts';
import { type RoomContext, requireRoom, storedFile } from '../../tools/file-room.ts';
import { type Kept, keepOrCut, type OutputContext, roomOf, TOO_LARGE_FIELD } from '../../tools/large.ts';

/**
 * The report of a model call as it is written to the log: texts that are too large for an entry become files (`tools/large.ts`).
 *
 * LARGE-2  Only as many texts of an answer become files as necessary, the largest first.
 * LARGE-4  Opaque fields cannot be cut: if they are too large, the entry has their size instead.
 */

/** The limit of the opaque fields of an answer, as JSON. */
const OPAQUE_BYTES = 262_144;
/** A preview of a shorter text would save nothing. */
const MIN_KEPT_LENGTH = 1_000;
/** Longer than the name of any tool. */
const MAX_NAME = 256;

/** `hasAttached`: the turn has files for its next message. */
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
  if (sizeOf(command.partial) <= roomOf(keeper)) return command;
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
