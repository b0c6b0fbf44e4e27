import { type Answer, type CallOutcome, firstCodePoints, PREVIEW_LENGTH } from '../../conversation/index.ts';
import { messageOf } from '../../kernel/index.ts';
import type { Runtime } from '../runtime.ts';

/**
 * What is too large to stand in the log as it is: it is kept as a file first, and the entry holds a preview that names
 * the file. An entry that the broker cannot carry would reach no follower, and no model could be shown it again.
 *
 * LARGE-1 The file is durable before anything names it. What cannot be kept is cut, and says so.
 * LARGE-2 Only as much of an answer becomes files as must: the largest texts first.
 * LARGE-3 A call whose arguments became a file is refused, never run with what is left of them (`isKeptApart`).
 */

/** Longer results of tools, in bytes of UTF-8, are kept in a file. */
export const INLINE_BYTES = 51_200;
/** What an entry may take of the broker's payload; the fields around its texts, and the envelope, need some. */
const PAYLOAD_SHARE = 0.9;
/** A shorter text is no shorter as a preview. */
const WORTH_KEEPING = 1_000;
/** Of a tool's name in a call: no tool has a longer one. */
const LONGEST_NAME = 256;

const KEPT_APART = 'arguments_too_large';

export interface Kept {
  readonly text: string;
  /** Of the file, and of the entry whose text it is; absent when it could not be kept. */
  readonly id?: string;
  readonly fullOutputPath?: string;
}

type Keeper = Pick<Runtime, 'store' | 'newId' | 'maxPayload'>;

/** A result of a tool as it stands in the log. */
export async function keptResult(
  conversation: string,
  content: string,
  keeper: Keeper,
): Promise<Kept | { readonly error: string }> {
  const fits = Buffer.byteLength(content) <= INLINE_BYTES && sizeOf(content) <= roomOf(keeper);
  if (fits) return { text: content };
  try {
    return await keep(conversation, content, keeper);
  } catch (error) {
    return { error: messageOf(error) };
  }
}

/** A report of a model call as it can stand in the log: the same one, unless it is too large. */
export async function keptReport(
  conversation: string,
  command: CallOutcome,
  keeper: Keeper,
): Promise<CallOutcome> {
  if (command.type === 'model-answered') {
    return { ...command, answer: await keptAnswer(conversation, command.answer, keeper) };
  }
  if (sizeOf(command.partial) <= roomOf(keeper)) return command;
  return { ...command, partial: (await keepOrCut(conversation, command.partial, keeper)).text };
}

/** Whether a followed entry with these fields reaches everybody. */
export function fitsPayload(fields: object, keeper: Pick<Runtime, 'maxPayload'>): boolean {
  return sizeOf(fields) <= roomOf(keeper);
}

/** LARGE-3: the call that these arguments are of was too large to be kept in the log. */
export function isKeptApart(given: Readonly<Record<string, unknown>>): boolean {
  return Object.hasOwn(given, KEPT_APART);
}

async function keptAnswer(conversation: string, answer: Answer, keeper: Keeper): Promise<Answer> {
  const room = roomOf(keeper);
  let kept = answer;
  while (sizeOf(kept) > room) {
    const largest = largestText(kept);
    if (largest === null) break;
    kept = largest.replaced(await keepOrCut(conversation, largest.text, keeper));
  }
  return kept;
}

interface LargeText {
  readonly text: string;
  replaced(kept: Kept): Answer;
}

/** LARGE-2 */
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
          replaced: ({ text }: Kept) => replaced({ arguments: JSON.stringify({ [KEPT_APART]: text }) }),
        },
        {
          text: called.name,
          replaced: () => replaced({ name: firstCodePoints(called.name, LONGEST_NAME) }),
        },
      ];
    }),
  ];
  const [largest] = texts.sort((a, b) => b.text.length - a.text.length);
  return largest && largest.text.length > WORTH_KEEPING ? largest : null;
}

/** LARGE-1 */
async function keep(conversation: string, content: string, keeper: Keeper): Promise<Kept> {
  const id = keeper.newId();
  await keeper.store.toolRecords.saveOutput(conversation, id, content);
  const fullOutputPath = `@state/logs/tool-results/${conversation}/${id}.json`;
  return { text: `${preview(content)}\n[Full output: ${fullOutputPath}]`, id, fullOutputPath };
}

async function keepOrCut(conversation: string, content: string, keeper: Keeper): Promise<Kept> {
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

function roomOf({ maxPayload }: Pick<Runtime, 'maxPayload'>): number {
  return maxPayload * PAYLOAD_SHARE;
}

/** Bytes as JSON. */
function sizeOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
