import {
  type Difference,
  type DiffLine,
  diffDefinitions,
  type Hunk,
  type PartDifference,
  type PlacedMessage,
  type View,
} from '../../client/index.ts';
import { count } from './cost.ts';
import type { Palette } from './palette.ts';
import { firstLine, indent, plural, printable } from './text.ts';
import { messageHeading } from './view.ts';

/** Two requests side by side, for people: what is the same is counted, the rest is named with its words. */

const SHOWN = 70;
const SIGNS = { same: '=', changed: '~', gone: '-', added: '+' } as const;
/** Lines of one part of a definition. */
const MOST_LINES = 80;

/** `what`: the agent and the place of each, as the person gave them. */
export function renderDiff(
  differences: readonly Difference[],
  [before, after]: readonly [View, View],
  what: readonly [string, string],
  palette: Palette,
): string {
  const lines: string[] = [];
  let same = 0;
  const flush = () => {
    if (same > 0) lines.push(palette.dim(`${SIGNS.same} ${plural(same, 'message')} the same`));
    same = 0;
  };
  for (const difference of differences) {
    if (difference.op === 'same') {
      same++;
      continue;
    }
    flush();
    lines.push(render(difference, palette));
  }
  flush();
  return [
    palette.bold(
      `- ${what[0]}: ${plural(before.messages.length, 'message')}, ${count(before.report.tokens)} tokens`,
    ),
    palette.bold(
      `+ ${what[1]}: ${plural(after.messages.length, 'message')}, ${count(after.report.tokens)} tokens`,
    ),
    '',
    ...definitionLines(before, after, palette),
    ...lines,
  ].join('\n');
}

function definitionLines(before: View, after: View, palette: Palette): string[] {
  const parts = diffDefinitions(before.report.definition, after.report.definition);
  return parts.flatMap((one) => partLines(one, palette));
}

function partLines({ part, op, hunks = [] }: PartDifference, palette: Palette): string[] {
  const lines = hunks.flatMap((hunk) => [
    palette.dim(`    ${rangeOf(hunk)}`),
    ...hunk.lines.map((line) => changedLine(line, palette)),
  ]);
  const more = lines.length - MOST_LINES;
  return [
    printable(`${SIGNS[op]} definition: ${part}`),
    ...lines.slice(0, MOST_LINES),
    ...(more > 0 ? [palette.dim(`    … ${plural(more, 'more line')}; --json prints all of them`)] : []),
  ];
}

function rangeOf({ before, after, lines }: Hunk): string {
  const range = (first: number, op: DiffLine['op']) => {
    const count = lines.filter((line) => line.op === 'same' || line.op === op).length;
    return `${count === 0 ? first - 1 : first},${count}`; // as in a unified difference
  };
  return `@@ -${range(before, 'gone')} +${range(after, 'added')} @@`;
}

function changedLine({ op, text }: DiffLine, palette: Palette): string {
  if (op === 'same') return palette.dim(`     ${printable(text)}`);
  const line = `    ${SIGNS[op]}${printable(text)}`;
  return op === 'gone' ? palette.red(line) : palette.green(line);
}

function render(difference: Exclude<Difference, { op: 'same' }>, palette: Palette): string {
  switch (difference.op) {
    case 'gone':
      return palette.red([heading(SIGNS.gone, difference.before), words(difference.before)].join('\n'));
    case 'added':
      return palette.green([heading(SIGNS.added, difference.after), words(difference.after)].join('\n'));
    case 'changed': {
      const { before, after } = difference;
      const at = firstDifference(textOf(before), textOf(after));
      return [
        palette.yellow(heading(SIGNS.changed, after)),
        palette.red(`    was ${messageHeading(before.message, before.part)}`),
        palette.red(indent(`- ${excerpt(textOf(before), at)}`, '    ')),
        palette.green(indent(`+ ${excerpt(textOf(after), at)}`, '    ')),
      ].join('\n');
    }
  }
}

function heading(sign: string, { place, message, part }: PlacedMessage): string {
  return printable(`${sign} ${place} ${messageHeading(message, part)}`);
}

function words(one: PlacedMessage): string {
  return indent(firstLine(printable(textOf(one)), SHOWN), '    ');
}

function textOf({ message }: PlacedMessage): string {
  const calls = (message.tool_calls ?? []).map(
    (call) => `⚙ ${call.function.name} ${call.function.arguments}`,
  );
  return [message.content ?? '', ...calls].filter((text) => text !== '').join('\n');
}

function firstDifference(before: string, after: string): number {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at++;
  return at;
}

/** From a little before the first difference on. */
function excerpt(text: string, at: number): string {
  const from = at < SHOWN / 2 ? 0 : at - 20;
  const shown = printable(text.slice(from)).replaceAll('\n', ' ⏎ ');
  return `${from > 0 ? '…' : ''}${firstLine(shown, SHOWN)}`;
}
