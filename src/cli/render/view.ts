import type { View, ViewMessage, ViewReport } from '../../client/index.ts';
import { headersText, parametersText } from './agents.ts';
import { count, renderUsage, renderUsed } from './cost.ts';
import type { Palette } from './palette.ts';
import { HANGING, hang, plural, printable } from './text.ts';
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
export function messageHeading(message: ViewMessage, part: ViewReport['parts'][number] | undefined): string {
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
  const { cost } = report;
  const lines: [string, string | null | undefined][] = [
    ['view', STATUS[report.status]],
    ['holds', report.included.length > 0 ? entriesNamed(report.included) : 'no entry'],
    ...report.left_out_as.map((left): [string, string] => ['not in it', gone(left)]),
    ['previews', report.shortened.length > 0 ? entriesNamed(report.shortened) : null],
    ['later', report.waiting.length > 0 ? `${entriesNamed(report.waiting)}: for a later call` : null],
    ['reduced', reducedWhen(report)],
    ['sent', SENT[`${report.sent}`]],
    ['fault', report.fault && `${report.fault.code}: ${report.fault.message}`],
    ['note', report.note ?? null],
    ['model', `${report.model}, ${report.token_ratio.toFixed(2)} tokens for each that is estimated`],
    ['parameters', parametersText(report.parameters)],
    ['headers', headersText(report.headers)],
    ['session', report.session && sessionText(report.session)],
    ['tools', report.tools.length > 0 ? report.tools.join(', ') : null],
    ['missing', report.tools_missing.length > 0 ? report.tools_missing.join(', ') : null],
    ['forbidden', report.tools_forbidden.length > 0 ? report.tools_forbidden.join(', ') : null],
    ['hash', report.requestHash],
    ['definition', definitionOf(report)],
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

function definitionOf({ definition: { hash, recorded } }: ViewReport): string {
  return recorded ? hash : 'the current one: the log records none for this request';
}

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
  const hard = [
    limits.messages === null ? [] : [`${count(limits.messages)} messages`],
    limits.chars === null ? [] : [`${count(limits.chars)} characters`],
  ].flat();
  const when = [`${count(above)} tokens`, ...hard].join(' or ');
  const removals = [
    would?.shorten.length ? `shorten ${entriesNamed(would.shorten)}` : '',
    would?.sum_up.length ? `sum up ${entriesNamed(would.sum_up)}` : '',
    would?.leave_out.length ? `leave out ${entriesNamed(would.leave_out)}` : '',
  ].filter((text) => text !== '');
  const what = removals.length > 0 ? `would ${removals.join(', ')}` : 'would remove nothing';
  return `${due ? 'due: it is' : 'when'} above ${when}, to ${count(target)} tokens; now it ${what}`;
}
