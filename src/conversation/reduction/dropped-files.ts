import { NO_LIMIT } from '../state/budget.ts';
import type { ViewMessage, ViewPart } from '../view/view-parts.ts';
import { isOver, type ReductionInput, type ReductionPlan } from './reduction-builder.ts';
import type { Size } from './view-groups.ts';

/** The files that a reduction takes out of a view: their lines remain (COMPACTION-2, COMPACTION-4). */

/** A size that counts the files that a request would contain. */
interface FileSize {
  readonly tokens: number;
  readonly files: number;
  readonly bytes: number;
}

/** Files of the whole view exceed what one request may contain. */
export function hasTooManyFiles(input: ReductionInput): boolean {
  return isOverFiles(sizeOfAll(input, 0), input);
}

function isOverFiles({ files, bytes }: FileSize, { limits }: ReductionInput): boolean {
  const { files: most = NO_LIMIT, fileBytes = NO_LIMIT } = limits;
  return files > most.max || bytes > fileBytes.max;
}

function sizeOfAll({ history, tail, filesIn = NO_FILES }: ReductionInput, tokens: number): FileSize {
  const files = [...history, ...tail].flatMap(({ message }) => (message.files ? filesIn(message) : []));
  return { tokens, files: files.length, bytes: files.reduce((sum, { size }) => sum + size, 0) };
}

const NO_FILES = () => [];

/**
 * The entries whose files are taken, the oldest first, until each exceeded measure is at its target. `older`: the parts that were in
 * a request; files of the others follow only until no limit of files is exceeded.
 */
export function dropFiles(input: ReductionInput, size: Size, older: readonly ViewPart[]): number[] {
  const { limits } = input;
  const { tokens } = size;
  const { files: most = NO_LIMIT, fileBytes = NO_LIMIT } = limits;
  const before = sizeOfAll(input, tokens);
  const hasTooMany = isOverFiles(before, input);
  const isForTokens = tokens > limits.tokens.max || !(hasTooMany || isOver(size, limits));
  const isDone = (left: FileSize) =>
    (!isForTokens || left.tokens <= limits.tokens.target) &&
    (!hasTooMany || (left.files <= most.target && left.bytes <= fileBytes.target));
  const first = drop(input, before, older, isDone);
  const rest = partsBeside(input, older);
  return [...first.entries, ...drop(input, first.left, rest, (left) => !isOverFiles(left, input)).entries];
}

/** Files of the trigger, and those that no request contained yet: only as many as needed to fit the window. */
export function dropLastFiles(input: ReductionInput, { tokens }: Size, older: readonly ViewPart[]): number[] {
  const fits = (left: FileSize) => left.tokens <= input.limits.windowTokens;
  return drop(input, sizeOfAll(input, tokens), partsBeside(input, older), fits).entries;
}

function partsBeside({ tail }: ReductionInput, older: readonly ViewPart[]): ViewPart[] {
  return tail.filter((part) => !older.includes(part));
}

function drop(
  { tokensOf, filesIn = NO_FILES }: ReductionInput,
  before: FileSize,
  parts: readonly ViewPart[],
  isDone: (left: FileSize) => boolean,
): { readonly entries: number[]; readonly left: FileSize } {
  const entries: number[] = [];
  let left = before;
  for (const { message, entries: owners } of parts) {
    if (isDone(left)) break;
    const shown = message.files ? filesIn(message) : [];
    if (shown.length === 0) continue;
    entries.push(...owners);
    left = {
      tokens: left.tokens - tokensOf(message) + tokensOf(withoutFiles(message)),
      files: left.files - shown.length,
      bytes: left.bytes - shown.reduce((sum, { size }) => sum + size, 0),
    };
  }
  return { entries, left };
}

function withoutFiles(message: ViewMessage): ViewMessage {
  return { ...message, files: message.files?.map((file) => ({ ...file, isDropped: true as const })) };
}

/** Null: there are none. */
export function ofFiles(entries: readonly number[]): ReductionPlan | null {
  if (entries.length === 0) return null;
  return {
    ...{ covered: [], leftOut: [], shortened: [], previewLength: 0 },
    withoutFiles: [...new Set(entries)].sort((one, other) => one - other),
    ...{ newestOfAPerson: null, quotedTokens: 0, summaryTokens: 0, isRewrite: false },
  };
}
