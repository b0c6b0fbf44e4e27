import {
  diffLines,
  finishNotice,
  type WhatIfResult,
  type WhatIfRun,
  type WhatIfSummary,
  type WhatIfTurn,
} from '../../client/index.ts';
import { count, money } from './cost.ts';
import { firstLine, indent, type Palette, plural, printable, renderTable } from './text.ts';

/** What-ifs, for people. */

const VERDICTS = ['same', 'different', 'diverged', 'failed', 'interrupted'] as const;
const SIDES = ['control', 'changed'] as const;
const SHOWN = 100;

export function renderWhatIfState({ state, done, total, turns, reason }: WhatIfSummary): string {
  const why = reason === undefined ? '' : ` (${reason})`;
  return `${state}${why}, ${done} of ${plural(total, 'run')} of ${plural(turns, 'turn')}`;
}

export function renderWhatIfs(whatIfs: readonly WhatIfSummary[], palette: Palette): string {
  if (whatIfs.length === 0) return 'no what-ifs';
  return renderTable(
    ['ID', 'STARTED', 'STATE', 'AGENT', 'CHANGE', 'TURNS', 'RUNS', 'SAME', 'OTHER', 'COST'],
    whatIfs.map((one) => {
      const { same, different, diverged, failed, interrupted } = one.changed;
      const other = different + diverged + failed + interrupted;
      const texts = [one.id, one.startedAt.slice(0, 19), one.state, one.agent, changeOf(one)];
      return [...texts, ...[one.turns, one.runs, same, other].map(count), costOf([one.control, one.changed])];
    }),
    palette.bold,
  );
}

export function renderWhatIf(result: WhatIfResult, palette: Palette): string {
  const { id, agent, conversation, runs } = result;
  const heading = `what-if ${id} of ${conversation}: ${agent} with ${changeOf(result)}, ${plural(runs, 'run')} of each side`;
  const [only] = result.results;
  return [
    palette.bold(heading),
    renderWhatIfState(result),
    '',
    sidesTable(result, palette),
    ...(only && result.results.length === 1
      ? ['', oneTurn(only, palette)]
      : ['', turnsTable(result.results, palette)]),
  ].join('\n');
}

function changeOf({ change: { model, persona } }: WhatIfSummary): string {
  const parts = [...(model === null ? [] : [`model ${model}`]), ...(persona ? ['another persona'] : [])];
  return parts.join(' and ');
}

function costOf(runs: readonly Pick<WhatIfRun, 'used'>[]): string {
  const sum = (key: 'usd' | 'unpricedCalls') => runs.reduce((total, { used }) => total + used[key], 0);
  return money(sum('usd'), sum('unpricedCalls'));
}

/** Calls, tokens and cost. */
function usedCells(calls: number, used: WhatIfRun['used']): string[] {
  return [...[calls, used.inputTokens, used.outputTokens].map(count), costOf([{ used }])];
}

function sidesTable(result: WhatIfSummary, { bold }: Palette): string {
  const rows = SIDES.map((side) => {
    const { used, ...verdicts } = result[side];
    return [side, ...VERDICTS.map((verdict) => count(verdicts[verdict])), ...usedCells(used.calls, used)];
  });
  const headings = ['', ...VERDICTS.map((verdict) => verdict.toUpperCase())];
  return renderTable([...headings, 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'COST'], rows, bold);
}

/** One line for each turn: how many runs of each side gave which verdict. */
function turnsTable(turns: readonly WhatIfTurn[], { bold }: Palette): string {
  const rows = turns.map((turn) => [
    ...[String(turn.at), verdictsOf(turn.control), verdictsOf(turn.changed)],
    ...[count(tokensOf(turn.control)), count(tokensOf(turn.changed)), costOf(turn.changed)],
    turn.failure ? `${turn.failure.code}: ${turn.failure.message}` : answerOf(turn.changed),
  ]);
  const costs = ['TOKENS CONTROL', 'TOKENS CHANGED', 'COST CHANGED'];
  const headings = ['AT', 'CONTROL', 'CHANGED', ...costs, 'CHANGED ANSWER'];
  return renderTable(headings, rows, bold);
}

function verdictsOf(runs: readonly WhatIfRun[]): string {
  const parts = VERDICTS.flatMap((verdict) => {
    const found = runs.filter((run) => run.verdict === verdict).length;
    return found === 0 ? [] : [runs.length === 1 ? verdict : `${found} ${verdict}`];
  });
  return parts.join(', ') || '-';
}

function tokensOf(runs: readonly WhatIfRun[]): number {
  return runs.reduce((sum, { used }) => sum + used.inputTokens + used.outputTokens, 0);
}

function answerOf([run]: readonly WhatIfRun[]): string {
  if (!run) return '';
  const answer = run.verdict === 'diverged' ? callsOf(run) : (run.content ?? callsOf(run));
  return firstLine(printable(run.message ?? answer), 60);
}

function callsOf({ toolCalls }: Pick<WhatIfRun, 'toolCalls'>): string {
  return toolCalls.map((call) => `⚙ ${call.name} ${call.arguments}`).join('\n');
}

function oneTurn(turn: WhatIfTurn, palette: Palette): string {
  const { at, recorded, failure } = turn;
  if (failure) return palette.red(printable(`the turn of entry ${at}: ${failure.code}: ${failure.message}`));
  type Shown = Pick<WhatIfRun, 'used' | 'steps' | 'finishReason' | 'model'>;
  const row = (name: string, verdict: string, { model, steps, used, finishReason }: Shown) => [
    ...[name, verdict, model ?? '', ...usedCells(steps, used)],
    finishReason ?? '-',
  ];
  const rows = [
    row('recorded', '', recorded),
    ...SIDES.flatMap((side) => turn[side].map((run, place) => row(`${side} ${place + 1}`, run.verdict, run))),
  ];
  const headings = ['RUN', 'VERDICT', 'MODEL', 'CALLS', 'TOKENS IN', 'TOKENS OUT', 'COST', 'FINISH'];
  return [
    renderTable(headings, rows, palette.bold),
    ...SIDES.flatMap((side) =>
      turn[side].flatMap((run, place) => differences(turn, side, place, run, palette)),
    ),
    ...(turn.truncated ? ['', 'long texts are cut: the file in the data directory has them'] : []),
  ].join('\n');
}

/** The lines in which a run differs from the recorded answer. Equal runs of one side are shown once. */
function differences(
  { recorded, ...turn }: WhatIfTurn,
  side: (typeof SIDES)[number],
  place: number,
  run: WhatIfRun,
  palette: Palette,
): string[] {
  if (run.verdict === 'same') return [];
  const text = textOf(run);
  const first = turn[side].findIndex((other) => other.verdict === run.verdict && textOf(other) === text);
  const heading = palette.bold(`${side} ${place + 1}: ${whyOf(run)}`);
  if (first !== place) return ['', heading, `  as ${side} ${first + 1}`];
  const lines = diffLines(textOf(recorded), text).filter(({ op }) => op !== 'same');
  const shown = lines.slice(0, SHOWN).map(({ op, text: line }) => {
    const plain = printable(line);
    return op === 'gone' ? palette.red(`- ${plain}`) : palette.green(`+ ${plain}`);
  });
  const more = lines.length > SHOWN ? [`  … ${plural(lines.length - SHOWN, 'more line')}`] : [];
  return ['', heading, ...shown, ...more];
}

function textOf(run: Pick<WhatIfRun, 'content' | 'toolCalls'>): string {
  return [run.content ?? '', callsOf(run)].filter((part) => part !== '').join('\n');
}

function whyOf({ verdict, steps, code, message, finishReason }: WhatIfRun): string {
  const notice = finishNotice(finishReason);
  const end = notice === null ? '' : `; the answer was ${notice}`;
  switch (verdict) {
    case 'diverged':
      return `call ${steps} wanted tools that the recorded turn did not call${end}`;
    case 'failed':
      return printable(indent(`${code}: ${message}`, ''));
    default:
      return `${verdict}${end}`;
  }
}
