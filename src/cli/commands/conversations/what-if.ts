import { resolve } from 'node:path';
import type { Command } from 'commander';
import {
  diffLines,
  finishNotice,
  type ParleyClient,
  ParleyError,
  type RequestOf,
  type WhatIfResult,
  type WhatIfRun,
  type WhatIfSummary,
  type WhatIfTurn,
} from '../../../client/index.ts';
import { splitFrontMatter } from '../../../config/index.ts';
import { createIdSource, sleep } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { type Connected, withDaemon } from '../../find-daemon.ts';
import { entryIndex, ofConversation, parser } from '../../options/options.ts';
import { actorOf, addPublisherOption } from '../../options/publisher.ts';
import { createSpinner, untilSignal } from '../../output/terminal.ts';
import { count, money } from '../../render/cost.ts';
import {
  dateTime,
  firstLine,
  indent,
  type Palette,
  plural,
  printable,
  renderTable,
} from '../../render/text.ts';
import { personaIn } from './steer.ts';

interface WhatIfOptions
  extends Partial<Pick<RequestOf<'what-if'>, 'agent' | 'at' | 'model' | 'persona' | 'runs'>> {
  readonly fromAnswer?: boolean;
  readonly list?: boolean;
  readonly show?: string;
  readonly stop?: string;
  readonly publisher?: string;
}

const POLL_MS = 300;

export function addWhatIf(program: Command, act: Act): void {
  const about = 'send the request of past turns again with another model or persona, and compare the answers';
  const added = ofConversation(program, 'what-if', about)
    .option('--agent <slug>', 'whose turns (default: the agent of entry --at)')
    .option(
      '--at <indexes>',
      'entries of the turns, separated by commas; all; or up or down: as people rated the answers',
      indexes,
    )
    .option('--model <name>', 'a key of models in parley.yaml')
    .option('--persona <file>', 'instructions instead of those of the agent')
    .option('-n, --runs <count>', 'runs of the changed request, and of the unchanged one (default: 1)', runs)
    .option(
      '--from-answer',
      'begin at the request that entry --at answers (default: at the first one of its turn)',
    )
    .option('--list', 'list the what-ifs of the conversation')
    .option('--show <id>', 'print the result of an earlier what-if')
    .option('--stop <id>', 'end a what-if that runs, and print what it has');
  act(addPublisherOption(added), whatIf);
}

async function whatIf(context: Context, conversation: string, options: WhatIfOptions): Promise<number> {
  const { list, show, stop, at } = options;
  const asked = [list, show, stop, at].filter((one) => one !== undefined);
  if (asked.length !== 1) {
    throw new ParleyError('USAGE', 'give one of --at, --list, --show and --stop', {
      hint: '`parley what-if demo --agent pm --at 11 --model m2`   or   `parley what-if demo --list`',
    });
  }
  return withDaemon(context, async (connected) => {
    const { client } = connected;
    if (list) {
      const { whatIfs } = await client.request('what-ifs', { conversation });
      if (context.json) for (const one of whatIfs) context.value(one);
      else context.line(renderWhatIfs(whatIfs, context.palette));
      return 0;
    }
    const actor = actorOf(context, options);
    if (stop !== undefined) await client.request('what-if-stop', { conversation, id: stop, ...actor });
    const id = show ?? stop ?? (await start(connected, conversation, options, actor)).id;
    if (show === undefined) await waitFor(connected, { conversation, id });
    return print(context, await wholeResult(client, { conversation, id }));
  });
}

async function start(
  context: Connected,
  conversation: string,
  { agent, at, model, persona: file, runs, fromAnswer }: WhatIfOptions,
  actor: ReturnType<typeof actorOf>,
): Promise<WhatIfSummary> {
  if (at === undefined || (model === undefined && file === undefined)) {
    throw new ParleyError('USAGE', 'what is changed? give --model, --persona or both', {
      hint: '`parley what-if demo --agent pm --at 11 --model m2`',
    });
  }
  const started = await context.request('what-if', {
    conversation,
    agent,
    at,
    model,
    runs,
    ...actor,
    id: createIdSource()().toLowerCase(), // a repeated request starts nothing (CLIENT-REQUESTS-1)
    ...(file === undefined ? {} : { persona: await personaOf(resolve(context.io.workingDirectory, file)) }),
    ...(fromAnswer ? { start: 'answer' as const } : {}),
  });
  if (!context.json) context.note(`what-if ${started.id}: ${renderWhatIfState(started)}`);
  return started;
}

/** Without the keys of the file of an agent. */
async function personaOf(path: string): Promise<string> {
  const parts = splitFrontMatter(await personaIn(path));
  if (parts) return parts.persona;
  throw new ParleyError('USAGE', `${path} has keys that never end`, {
    hint: 'add a second line of --- before the persona',
  });
}

interface Asked {
  readonly conversation: string;
  readonly id: string;
}

/** Shows the progress until the what-if has ended. A signal ends the wait, not the what-if. */
async function waitFor(context: Connected, asked: Asked): Promise<void> {
  const spinner = createSpinner(context.io);
  await untilSignal(context.io, async (signal) => {
    for (;;) {
      const summary = await context.request('what-if-result', { ...asked, limit: 0 });
      if (!isOpen(summary)) return;
      if (signal.aborted) throw leftRunning(context, asked);
      spinner.show(renderWhatIfState(summary));
      await sleep(POLL_MS, signal);
    }
  }).finally(spinner.hide);
}

function isOpen({ state }: WhatIfSummary): boolean {
  return state === 'queued' || state === 'running';
}

function leftRunning({ command }: Context, { conversation, id }: Asked): ParleyError {
  return new ParleyError('WHAT_IF_RUNNING', `the what-if ${id} continues in the daemon`, {
    hint: `${command(`what-if ${conversation} --show ${id}`)} prints its result, --stop ${id} ends it`,
  });
}

async function wholeResult(client: ParleyClient, asked: Asked): Promise<WhatIfResult> {
  let page = await client.request('what-if-result', asked);
  const results: WhatIfTurn[] = [...page.results];
  while (page.next !== null) {
    page = await client.request('what-if-result', { ...asked, from: page.next });
    results.push(...page.results);
  }
  return { ...page, results };
}

/** 1: it has not all its runs. */
function print(context: Context, result: WhatIfResult): number {
  context.result(result, (one) => renderWhatIf(one, context.palette));
  return result.state === 'done' || isOpen(result) ? 0 : 1;
}

function indexes(value: string): RequestOf<'what-if'>['at'] {
  if (value === 'all' || value === 'up' || value === 'down') return value;
  const [first, ...others] = value.split(',').map((one) => entryIndex(one.trim()));
  return first !== undefined && others.length === 0 ? first : [first ?? 0, ...others];
}

const runs = parser((value) => {
  const count = Number(value);
  return Number.isInteger(count) && count >= 1 && count <= 20 ? count : null;
}, 'Give a whole number from 1 to 20.');

const VERDICTS = ['same', 'different', 'diverged', 'failed', 'interrupted'] as const;
const SIDES = ['control', 'changed'] as const;
const SHOWN = 100;

function renderWhatIfState({ state, done, total, turns, reason }: WhatIfSummary): string {
  const why = reason === undefined ? '' : ` (${reason})`;
  return `${state}${why}, ${done} of ${plural(total, 'run')} of ${plural(turns, 'turn')}`;
}

function renderWhatIfs(whatIfs: readonly WhatIfSummary[], palette: Palette): string {
  if (whatIfs.length === 0) return 'no what-ifs';
  return renderTable(
    ['ID', 'STARTED', 'STATE', 'AGENT', 'CHANGE', 'TURNS', 'RUNS', 'SAME', 'OTHER', 'COST'],
    whatIfs.map((one) => {
      const { same, different, diverged, failed, interrupted } = one.changed;
      const other = different + diverged + failed + interrupted;
      const texts = [one.id, dateTime(one.startedAt), one.state, one.agent, changeOf(one)];
      return [...texts, ...[one.turns, one.runs, same, other].map(count), costOf([one.control, one.changed])];
    }),
    palette.bold,
  );
}

function renderWhatIf(result: WhatIfResult, palette: Palette): string {
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
  const parts = [
    ...(model === null ? [] : [`model ${model}`]),
    ...(persona === null ? [] : ['another persona']),
  ];
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
