import { resolve } from 'node:path';
import type { Command } from 'commander';
import {
  type ParleyClient,
  ParleyError,
  type RequestOf,
  type WhatIfResult,
  type WhatIfSummary,
  type WhatIfTurn,
} from '../../../client/index.ts';
import { splitFrontMatter } from '../../../config/index.ts';
import { createIdSource, sleep } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { entryIndex, ofConversation, parser } from '../../options/options.ts';
import { actorOf, addPublisherOption } from '../../options/publisher.ts';
import { createSpinner, untilSignal } from '../../output/terminal.ts';
import { renderWhatIf, renderWhatIfState, renderWhatIfs } from '../../render/what-if.ts';
import { personaIn } from './steer.ts';

interface WhatIfOptions {
  readonly agent?: string;
  readonly at?: RequestOf<'what-if'>['at'];
  readonly model?: string;
  readonly persona?: string;
  readonly runs?: number;
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
  return withDaemon(context, async (client) => {
    if (list) {
      const { whatIfs } = await client.request('what-ifs', { conversation });
      if (context.json) for (const one of whatIfs) context.value(one);
      else context.line(renderWhatIfs(whatIfs, context.palette));
      return 0;
    }
    const actor = actorOf(context, options);
    if (stop !== undefined) await client.request('what-if-stop', { conversation, id: stop, ...actor });
    const id = show ?? stop ?? (await start(context, client, conversation, options, actor)).id;
    if (show === undefined) await waitFor(context, client, { conversation, id });
    return print(context, await wholeResult(client, { conversation, id }));
  });
}

async function start(
  context: Context,
  client: ParleyClient,
  conversation: string,
  { agent, at, model, persona: file, runs, fromAnswer }: WhatIfOptions,
  actor: ReturnType<typeof actorOf>,
): Promise<WhatIfSummary> {
  if (at === undefined || (model === undefined && file === undefined)) {
    throw new ParleyError('USAGE', 'what is changed? give --model, --persona or both', {
      hint: '`parley what-if demo --agent pm --at 11 --model m2`',
    });
  }
  const started = await client.request('what-if', {
    ...{ conversation, agent, at, model, runs, ...actor },
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
async function waitFor(context: Context, client: ParleyClient, asked: Asked): Promise<void> {
  const spinner = createSpinner(context.io);
  await untilSignal(context.io, async (signal) => {
    for (;;) {
      const summary = await client.request('what-if-result', { ...asked, limit: 0 });
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
