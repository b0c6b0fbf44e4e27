import {
  type Difference,
  type DiffLine,
  diffDefinitions,
  type Hunk,
  type PartDifference,
  type PlacedMessage,
  type View,
  type ViewMessage,
  type ViewReport,
} from '../../client/index.ts';
import { count, renderUsage, renderUsed } from './cost.ts';
import { headersText, parametersText } from './state.ts';
import { firstLine, HANGING, hang, indent, type Palette, plural, printable } from './text.ts';
import { createWordWrap } from './word-wrap.ts';

/** What an agent's model is sent, for people: each message under what it is, then the account of the whole. */

const WIDTH = 80;
const BAR = 40;

export function renderView(view: View, palette: Palette): string {
  const messages = view.messages.map((message, place) => renderMessage(view, message, place, palette));
  return [...messages, renderReport(view.report, palette)].join('\n\n');
}

function renderMessage({ report }: View, message: ViewMessage, place: number, palette: Palette): string {
  const calls = (message.tool_calls ?? []).map((call) =>
    palette.dim(hang(printable(`⚙ ${call.id} ${call.function.name} ${call.function.arguments}`))),
  );
  const body = message.content === null || message.content === '' ? [] : [bodyOf(message.content)];
  const heading = `── ${place} ${messageHeading(message, report.parts[place])} ──`;
  return [palette.bold(printable(heading)), ...body, ...calls].join('\n');
}

/** Unchanged, but for lines that look like a heading or a call: those are set in. */
function bodyOf(content: string): string {
  return printable(content).replace(/^(?=──|⚙)/gm, HANGING);
}

/** `tool c2_0 · history · entry 10 · 24 tokens`. */
function messageHeading(message: ViewMessage, part: ViewReport['parts'][number] | undefined): string {
  const who = [message.role, message.tool_call_id].filter(Boolean).join(' ');
  if (!part) return who;
  const of = part.entries.length > 0 ? [`${entriesNamed(part.entries)}`] : [];
  return [who, part.kind, ...of, plural(part.tokens, 'token')].join(' · ');
}

/** `entry 3`, `entries 3, 5 to 9`. */
function entriesNamed(indexes: readonly number[]): string {
  return `${indexes.length === 1 ? 'entry' : 'entries'} ${rows(indexes)}`;
}

function rows(indexes: readonly number[]): string {
  const found: [number, number][] = [];
  for (const index of indexes) {
    const last = found.at(-1);
    if (last?.[1] === index - 1) last[1] = index;
    else found.push([index, index]);
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`)).join(', ');
}

function renderReport(report: ViewReport, palette: Palette): string {
  const { tokens, window } = report;
  const share = window > 0 ? ` (${Math.round((100 * tokens) / window)} %)` : '';
  const title = `── ${count(tokens)} of ${count(window)} tokens${share} ──`;
  return [palette.bold(title), ...bars(report, palette), '', ...facts(report)].join('\n');
}

/** Against the whole window, so that what fills it is seen. */
function bars({ tokens_by_group: groups, tokens, window, reserved }: ViewReport, palette: Palette): string[] {
  const free = Math.max(0, window - reserved - tokens);
  const all = [...Object.entries(groups), ['for the answer', reserved] as const, ['free', free] as const];
  const name = Math.max(...all.map(([label]) => label.length));
  const number = Math.max(...all.map(([, value]) => count(value).length));
  return all.map(([label, value], at) => {
    const length = Math.min(BAR, Math.round((BAR * value) / Math.max(1, window)));
    const bar =
      at < all.length - 2 ? '█'.repeat(length) || (value > 0 ? '▏' : '') : palette.dim('░'.repeat(length));
    return `${label.padEnd(name)}  ${count(value).padStart(number)}  ${bar}`.trimEnd();
  });
}

function facts(report: ViewReport): string[] {
  const { agent, answer, cost, definition, unseen_files: unseen = [] } = report;
  const entries = (list: readonly number[]) => (list.length > 0 ? entriesNamed(list) : null);
  const lines: [string, string | null | undefined][] = [
    ['request', `of ${agent}, ${answer === null ? 'its next one' : `answered by entry ${answer}`}`],
    ['view', STATUS[report.status]],
    ['holds', entries(report.included) ?? 'no entry'],
    ...report.left_out_as.map((left): [string, string] => ['not in it', gone(left)]),
    ['previews', entries(report.shortened)],
    ['files only named', entries(report.without_files)],
    ...unseen.map(({ entry, name, why }): [string, string] => [
      'not shown',
      `${name} of entry ${entry}: ${why}`,
    ]),
    ['later', report.waiting.length > 0 ? `${entriesNamed(report.waiting)}: for a later call` : null],
    ['reduced', reducedWhen(report)],
    ['sent', SENT[`${report.sent}`]],
    ['fault', report.fault && `${report.fault.code}: ${report.fault.message}`],
    ['note', report.note ?? null],
    ['model', `${report.model}, ${report.token_ratio.toFixed(2)} tokens for each that is estimated`],
    ['parameters', parametersText(report.parameters)],
    ['headers', headersText(report.headers)],
    ['session', report.session && sessionText(report.session)],
    ['told', report.told && toldText(report.told)],
    ['prompt', report.told?.prompt && promptText(report.told.prompt)],
    ['tools', report.tools.join(', ')],
    ['missing', report.tools_missing.join(', ')],
    ['forbidden', report.tools_forbidden.join(', ')],
    ['hash', report.requestHash],
    ['definition', definition.recorded ? definition.hash : NOT_RECORDED],
    ['this call', cost.call && renderUsage(cost.call)],
    ['its turn', cost.turn.calls > 1 ? renderUsed(cost.turn) : null],
    ['the agent', renderUsed(cost.agent)],
    ['all agents', renderUsed(cost.conversation)],
  ];
  return lines.flatMap(([name, text]) => (text ? [fact(name, printable(text))] : []));
}

function sessionText({ id, by, from }: NonNullable<ViewReport['session']>): string {
  if (by === 'daemon') return `${id}, made by the daemon`;
  return `${id}, ${by === 'person' ? 'named by the message' : 'returned by the agent'} in entry ${from}`;
}

function toldText({ session, messages }: NonNullable<ViewReport['told']>): string {
  if (session === 'waiting') return 'nothing: its program waited for results';
  const which = messages.length > 0 ? `messages ${rows(messages)} of these` : 'to continue, and nothing new';
  if (session === 'new') return 'all of these, since its session is new';
  return `${which}, which its session missed${session === 'unknown' ? '; all of these if its program has lost it' : ''}`;
}

function promptText({ hash, sent }: { readonly hash: string; readonly sent: boolean | 'unknown' }): string {
  const was = { true: 'as it was sent', false: 'other blocks were sent', unknown: 'the log records none' };
  return `${hash}, ${was[`${sent}`]} (--prompt prints its blocks)`;
}

const NOT_RECORDED = 'the current one: the log records none for this request';
const NAME = 12;

function fact(name: string, text: string): string {
  const wrap = createWordWrap(() => WIDTH, ' '.repeat(NAME));
  return wrap.add(name.padEnd(NAME) + text.replaceAll(/\s+/g, ' '));
}

const STATUS: Readonly<Record<ViewReport['status'], string>> = {
  not_needed: 'whole: nothing was removed',
  reduced: 'reduced: a summary or previews replace what was removed',
  no_effect: 'over its limit, and nothing can be removed; it fits the window',
  failed: 'too large for the window: it is not sent',
};

const SENT: Readonly<Record<string, string>> = {
  true: 'yes: the log recorded the hash of these bytes',
  false:
    'no: other bytes were sent; the log recorded another hash (the configuration changed since and the turn recorded no definition, or an older version of Parley built the request)',
  unknown: 'unknown: the log recorded no hash for this place',
};

function gone({ from, to, how, by }: ViewReport['left_out_as'][number]): string {
  const which = from === to ? `entry ${from}` : `entries ${from} to ${to}`;
  if (how === 'empty') return `${which}: without text, which this provider does not accept`;
  const why = how === 'summed_up' ? `summed up in entry ${by}` : `left out by entry ${by}, never shown`;
  return `${which}: ${why}; recall {"from":${from},"to":${to}}`;
}

function reducedWhen({ next_reduction: { above, target, limits, due, would } }: ViewReport): string {
  const named = (text: string, value: number | null) => (value === null ? [] : [`${count(value)} ${text}`]);
  const hard = [...named('messages', limits.messages), ...named('characters', limits.chars)];
  const when = [`${count(above)} tokens`, ...hard].join(' or ');
  const of = (what: string, entries: readonly number[] = []) =>
    entries.length > 0 ? [`${what} ${entriesNamed(entries)}`] : [];
  const removals = [
    ...of('drop the files of', would?.drop_files),
    ...of('shorten', would?.shorten),
    ...of('sum up', would?.sum_up),
    ...of('leave out', would?.leave_out),
  ];
  const what = removals.length > 0 ? `would ${removals.join(', ')}` : 'would remove nothing';
  return `${due ? 'due: it is' : 'when'} above ${when}, to ${count(target)} tokens; now it ${what}`;
}

const SHOWN = 70;
const SIGNS = { same: '=', changed: '~', gone: '-', added: '+' } as const;
/** Lines of one part of a definition. */
const MOST_LINES = 80;

/**
 * Two requests side by side, for people: what is the same is counted, the rest is named with its words. `what`: the
 * agent and the place of each, as the person gave them.
 */
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
    palette.bold(`- ${what[0]}: ${sizeOf(before)}`),
    palette.bold(`+ ${what[1]}: ${sizeOf(after)}`),
    '',
    ...diffDefinitions(before.report.definition, after.report.definition).flatMap((one) =>
      partLines(one, palette),
    ),
    ...lines,
  ].join('\n');
}

const sizeOf = ({ messages, report }: View) =>
  `${plural(messages.length, 'message')}, ${count(report.tokens)} tokens`;

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
