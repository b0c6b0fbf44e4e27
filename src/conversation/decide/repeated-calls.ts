import { readArguments } from '../../kernel/index.ts';
import type { CallPlace, MessageEntry } from '../log/entry.ts';
import { type OpenCall, samePlace, type Turn } from '../state/state.ts';
import type { DecisionBuilder } from './decision-builder.ts';

/**
 * An agent that makes the same calls again and again, and gets the same results.
 *
 * REPEATED-CALLS-1 A round is an answer with calls, and their results. Rounds are alike if names, arguments as JSON and
 *    results are; what the agent says beside them does not count. A message that is delivered in between begins anew, and so
 *    does the answer of a person.
 * REPEATED-CALLS-2 The result that completes the third alike round has a notice. The fifth ends the turn.
 */
export const ROUNDS_UNTIL_END = 5;
const ROUNDS_UNTIL_NOTICE = 3;
const NOTICE =
  '\n\n[The same call had the same result three times in a row. Try something else, or say what you need. After five times the turn ends.]';

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
  const isDue = alikeRounds(builder, turn, { ...result, call: call.place }) === ROUNDS_UNTIL_NOTICE;
  return isDue ? `${content}${NOTICE}` : content;
}

/** The number of newest rounds of the turn that are alike; `completing`: a result that the newest lacks. */
export function alikeRounds(builder: DecisionBuilder, turn: Turn, completing?: Result): number {
  const results: Result[] = completing ? [completing] : [];
  let newest: string | null = null;
  let count = 0;
  for (let index = builder.nextIndex - 1; index > turn.startedAt; index--) {
    const entry = builder.entryAt(index);
    if (entry?.turnId !== turn.turnId) continue;
    if (entry.type === 'message-delivered') return count;
    if (entry.type !== 'message') continue;
    if (entry.role === 'tool') results.push(entry);
    else if (entry.role === 'assistant') {
      const round = roundOf(entry, results, builder);
      newest ??= round;
      if (round === null || round !== newest) return count;
      count += 1;
    }
  }
  return count;
}

interface Result {
  readonly call?: CallPlace | undefined;
  readonly content: string | null;
  readonly fullOutputPath?: string | undefined;
  readonly answers?: readonly number[] | undefined;
}

/** Null: no calls, not all have results, or a person answered one. */
function roundOf(
  { index, tool_calls: calls = [] }: MessageEntry,
  results: readonly Result[],
  builder: DecisionBuilder,
): string | null {
  const pairs = calls.map(({ function: { name, arguments: given } }, position) => {
    const result = results.find(({ call }) => call && samePlace(call, { index, position }));
    const read = readArguments(given);
    const isNew = result?.answers?.some((at) => builder.entryAt(at)?.author.kind === 'person');
    return result && !isNew ? [name, read.ok ? read.value : given, plainContent(result)] : undefined;
  });
  return calls.length === 0 || pairs.includes(undefined) ? null : JSON.stringify(pairs);
}

/** Without the notice, and without the name of a file that is new for each result. */
function plainContent({ content, fullOutputPath = '' }: Result): string {
  const plain = content?.endsWith(NOTICE) ? content.slice(0, -NOTICE.length) : (content ?? '');
  return fullOutputPath === '' ? plain : plain.replaceAll(fullOutputPath, '');
}
