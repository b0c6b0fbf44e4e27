import { readArguments } from '../../kernel/index.ts';
import type { CallPlace, MessageEntry } from '../log/entry.ts';
import { type FilePart, filesOf, type Part } from '../log/parts.ts';
import { type OpenCall, samePlace, type Turn } from '../state/state.ts';
import { PERMITS, permissionIn } from '../tools/tool-rules.ts';
import type { DecisionBuilder } from './decision-builder.ts';

/**
 * An agent that makes the same calls again and again, and gets the same results.
 *
 * REPEATED-CALLS-1 A round is an answer with calls, and their results. Rounds are alike if names, arguments as JSON and
 *    results are; what the agent says beside them does not count. A message that is delivered in between begins anew, and so
 *    do the answer of a person, and a permission that was given: what the program then did is not known.
 * REPEATED-CALLS-2 A loop is one to four rounds. The result that completes its third repetition has a notice. The fifth ends the turn.
 */
export const REPETITIONS_UNTIL_END = 5;
const REPETITIONS_UNTIL_NOTICE = 3;
/** Lengths in rounds. */
const LOOPS = [1, 2, 3, 4];
const MOST_ROUNDS = 4 * REPETITIONS_UNTIL_END;
const NOTICE =
  '\n\n[The same calls had the same results three times in a row. Try something else, or say what you need. After five times the turn ends.]';

/** The content of a result, with the notice if it is due. `call` is open until this result is added. */
export function withNotice(
  builder: DecisionBuilder,
  turn: Turn,
  call: OpenCall,
  result: Result & { readonly content: string },
): string {
  const { content } = result;
  const open = builder.state.agents[turn.agent]?.turn?.openCalls ?? [];
  if (open.length !== 1) return content;
  const isDue = repetitions(builder, turn, { ...result, call: call.place }) === REPETITIONS_UNTIL_NOTICE;
  return isDue ? `${content}${NOTICE}` : content;
}

/** How often the newest loop of the turn was made, with fractions; `completing`: a result that the newest round lacks. */
export function repetitions(builder: DecisionBuilder, turn: Turn, completing?: Result): number {
  const rounds = newestRounds(builder, turn, completing);
  const ofLoop = (length: number) => {
    const other = rounds.findIndex((round, at) => round !== rounds[at + length]);
    return (other + length) / length; // the first that differs: -1 only without a round
  };
  return rounds.length === 0 ? 0 : Math.max(...LOOPS.map(ofLoop));
}

/** As many as the end of the longest loop needs, the newest first. */
function newestRounds(
  builder: DecisionBuilder,
  turn: Turn,
  completing: Result | undefined,
): readonly string[] {
  const results: Result[] = completing ? [completing] : [];
  const rounds: string[] = [];
  for (let index = builder.nextIndex - 1; index > turn.startedAt; index--) {
    const entry = builder.entryAt(index);
    if (entry?.turnId !== turn.turnId) continue;
    if (entry.type === 'message-delivered') return rounds;
    if (entry.type !== 'message') continue;
    if (entry.role === 'tool') results.push(entry);
    else if (entry.role === 'assistant') {
      const round = roundOf(entry, results, builder);
      if (round === null) return rounds;
      rounds.push(round);
      if (rounds.length === MOST_ROUNDS) return rounds;
    }
  }
  return rounds;
}

export function withoutNotice(content: string): string {
  return content.endsWith(NOTICE) ? content.slice(0, -NOTICE.length) : content;
}

interface Result {
  readonly call?: CallPlace | undefined;
  readonly content: string | null;
  readonly parts?: readonly Part[] | undefined;
  readonly files?: readonly FilePart[] | undefined;
  readonly fullOutputPath?: string | undefined;
  readonly answers?: readonly number[] | undefined;
}

/** Null: no calls, not all have results, or one begins the count anew (REPEATED-CALLS-1). */
function roundOf(
  { index, tool_calls: calls = [] }: MessageEntry,
  results: readonly Result[],
  builder: DecisionBuilder,
): string | null {
  const pairs = calls.map(({ function: { name, arguments: given } }, position) => {
    const result = results.find(({ call }) => call && samePlace(call, { index, position }));
    const read = readArguments(given);
    const isAnswered = result?.answers?.some((at) => builder.entryAt(at)?.author.kind === 'person');
    const isNew = isAnswered || (PERMITS.has(name) && permissionIn(result?.content ?? '').isGiven);
    return result && !isNew ? [name, read.ok ? read.value : given, plainContent(result)] : undefined;
  });
  return calls.length === 0 || pairs.includes(undefined) ? null : JSON.stringify(pairs);
}

/** Text and hashes of the files, without the notice, and without the name of a file that is new for each result. */
export function plainContent({
  content,
  fullOutputPath = '',
  parts,
  files = filesOf({ parts }),
}: Result): string {
  const plain = withoutNotice(content ?? '');
  const text = fullOutputPath === '' ? plain : plain.replaceAll(fullOutputPath, '');
  return [text, ...files.map(({ sha256 }) => sha256)].join('\n');
}
