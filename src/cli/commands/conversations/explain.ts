import type { Command } from 'commander';
import { diffDefinitions, diffViews, ParleyError, type RequestOf, type View } from '../../../client/index.ts';
import { type Act, type Context, loadConfig } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { entryIndex, noEffect, ofConversation } from '../../options/options.ts';
import { renderDiff, renderView } from '../../render/view.ts';

interface ExplainOptions {
  readonly agent?: string;
  readonly at?: number;
  readonly diff?: number | true;
  readonly diffAgent?: string;
  readonly config?: string;
  readonly body?: true;
  readonly prompt?: true;
}

export function addExplain(program: Command, act: Act): void {
  const about = 'print the exact request that an agent’s model gets; with --data no daemon is needed';
  const added = ofConversation(program, 'explain', about)
    .option('--agent <slug>', 'whose view (default: of the agent of entry --at, else of the newest answer)')
    .option(
      '--at <index>',
      'as of this entry; for an answer of the agent: the request that led to it',
      entryIndex,
    )
    .option('--diff [index]', 'compare with the request as of this entry (default: now)', entryIndex)
    .option('--diff-agent <slug>', 'compare with the request of this agent')
    .option('--body', 'print the exact bytes that are sent to the model, and nothing else')
    .option(
      '--prompt',
      'of a coding agent: print the exact content blocks of its prompt (JSON), and nothing else',
    )
    .option('--config <dir>', 'the configuration, with --data (PARLEY_CONFIG; default: config)');
  act(added, async (context, conversation: string, options: ExplainOptions) => {
    refuseIgnored(context, options);
    const read = await viewReader(context, conversation, options);
    const first = await answerToExplain(read, options);
    const second = comparedWith(options, first);
    if (options.body) return printBody(context, await read({ ...first, body: true }), second);
    if (options.prompt) return printPrompt(context, await read({ ...first, body: 'prompt' }), second);
    if (second) return compare(context, await withChangedTexts(read, [first, second]), [first, second]);
    const { messages, report } = await read(first);
    context.result({ messages, report }, (view) => renderView(view, context.palette));
  });
}

/** No line break follows: the SHA-256 of what is printed is `requestHash`. */
function printBody({ write }: Context, { body = '' }: View, second: RequestAt | null, option = 'body'): void {
  if (second) throw noEffect('diff', `leave it out: --${option} prints one request`);
  write(body);
}

function printPrompt(context: Context, view: View, second: RequestAt | null): void {
  const { told } = view.report;
  const why =
    told?.session === 'waiting'
      ? 'before this answer its program was told nothing: it waited for results'
      : 'no prompt of a coding agent is recorded up to here';
  if (!told?.prompt)
    throw new ParleyError('NO_PROMPT', why, {
      hint: 'give --at the first answer of a turn of a coding agent',
    });
  printBody(context, view, second, 'prompt');
}

/** `at`: as of this entry; undefined: now. */
interface RequestAt extends Omit<RequestOf<'view'>, 'conversation'> {
  readonly agent: string;
}

/** Without an agent, the daemon finds the answer. */
async function answerToExplain(read: ReadView, { agent, at }: ExplainOptions): Promise<RequestAt> {
  if (agent !== undefined) return { agent, at };
  const { report } = await read({ at });
  return { agent: report.agent, at: report.answer ?? at };
}

/** The request to compare with; null: none. */
function comparedWith({ diff, diffAgent }: ExplainOptions, { agent, at }: RequestAt): RequestAt | null {
  if (diff === undefined && diffAgent === undefined) return null;
  const other = diff === undefined ? at : diff === true ? undefined : diff;
  return { agent: diffAgent ?? agent, at: other };
}

/** Both views, with the texts of the parts that differ. */
async function withChangedTexts(
  read: ReadView,
  [first, second]: readonly [RequestAt, RequestAt],
): Promise<readonly [View, View]> {
  const [before, after] = [await read(first), await read(second)];
  const texts = diffDefinitions(before.report.definition, after.report.definition).map(({ part }) => part);
  if (texts.length === 0) return [before, after];
  return [await read({ ...first, texts }), await read({ ...second, texts })];
}

function compare(
  context: Context,
  views: readonly [View, View],
  requests: readonly [RequestAt, RequestAt],
): void {
  const messages = diffViews(...views);
  const definition = diffDefinitions(views[0].report.definition, views[1].report.definition);
  if (context.json) {
    const [before, after] = [0, 1].map((side) => {
      const { agent, at = null } = requests[side] as RequestAt;
      const { report } = views[side] as View;
      return { agent, at, tokens: report.tokens, requestHash: report.requestHash };
    });
    context.value({ before, after, messages, definition });
    return;
  }
  const names = [named(requests, views, 0), named(requests, views, 1)] as const;
  context.line(renderDiff(messages, views, names, context.palette));
}

/** A recorded definition compared with the current one of another place is easily mistaken for an edit: it is named. */
function named(
  requests: readonly [RequestAt, RequestAt],
  [before, after]: readonly [View, View],
  side: 0 | 1,
): string {
  const { agent, at } = requests[side];
  if (at === undefined) return `${agent} now`;
  const [own, other] = side === 0 ? [before, after] : [after, before];
  const isCurrent = !own.report.definition.recorded && other.report.definition.recorded;
  return `${agent} at ${at}${isCurrent ? ', with the current definition' : ''}`;
}

/** With --data it reads files, otherwise it asks a daemon. Options of the other way are refused. */
function refuseIgnored({ options }: Context, { config }: ExplainOptions): void {
  if (options.data === undefined) {
    if (config !== undefined) throw noEffect('config', 'add --data: a daemon uses its own configuration');
    return;
  }
  const ofServer = Object.keys(options).find((name) => /^(nats.|prefix$)/.test(name));
  if (ofServer !== undefined) throw noEffect(ofServer, 'leave it out: with --data no server is used');
  if (options.nats === undefined) return;
  throw new ParleyError('USAGE', '--nats and --data exclude each other here', {
    hint: 'ask the daemon with --nats, or read its files with --data',
  });
}

type ReadView = (request: Partial<RequestAt>) => Promise<View>;

async function viewReader(
  context: Context,
  conversation: string,
  { config: folder }: ExplainOptions,
): Promise<ReadView> {
  if (context.options.data === undefined) {
    return (request) =>
      withDaemon(context, ({ client }) => client.request('view', { conversation, ...request }));
  }
  const config = await loadConfig(context, folder);
  context.note(`configuration: ${config.directory}`); // the request depends on it
  const { explainOffline } = await context.dependencies.daemon();
  const dataDirectory = config.daemon.data;
  return (request) => explainOffline({ dataDirectory, config, conversation, ...request });
}
