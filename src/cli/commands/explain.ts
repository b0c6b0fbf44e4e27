import type { Command } from 'commander';
import { diffViews, ParleyError, type View } from '../../client/index.ts';
import type { Act } from '../act.ts';
import type { Context } from '../context.ts';
import { withDaemon } from '../find-daemon.ts';
import { loadConfig } from '../load-config.ts';
import { conversationId, entryIndex } from '../options.ts';
import { renderView } from '../render/view.ts';
import { renderDiff } from '../render/view-diff.ts';
import { noEffect } from '../taken-options.ts';

interface ExplainOptions {
  readonly agent: string;
  readonly at?: number;
  readonly diff?: number | true;
  readonly diffAgent?: string;
  readonly config?: string;
}

export function addExplain(program: Command, act: Act): void {
  program
    .command('explain')
    .description('print the exact request that an agent’s model is sent; with --data no daemon is needed')
    .argument('<conversation>', 'its id', conversationId)
    .requiredOption('--agent <slug>', 'whose view')
    .option('--at <index>', 'as of this entry; an answer of the agent: the request behind it', entryIndex)
    .option(
      '--diff [index]',
      'what differs in the request as of this entry (alone: as the log is now)',
      entryIndex,
    )
    .option('--diff-agent <slug>', 'what differs in the request of this agent')
    .option('--config <dir>', 'the configuration, with --data (PARLEY_CONFIG; default: config)')
    .action((conversation: string, options: ExplainOptions, command: Command) =>
      act(command, async (context) => {
        refuseIgnored(context, options);
        const look = await looker(context, conversation, options);
        const first = { agent: options.agent, at: options.at };
        const second = comparedWith(options);
        const view = await look(first);
        if (second) compare(context, [view, await look(second)], [first, second]);
        else if (context.json) context.value({ messages: view.messages, report: view.report });
        else context.line(renderView(view, context.palette));
        return 0;
      }),
    );
}

/** Whose request, and as of which entry; undefined: as the log is now. */
interface Place {
  readonly agent: string;
  readonly at?: number;
}

/** Another place, another agent, or both; null: nothing is compared. */
function comparedWith({ agent, at, diff, diffAgent }: ExplainOptions): Place | null {
  if (diff === undefined && diffAgent === undefined) return null;
  const place = diff === undefined ? at : diff === true ? undefined : diff;
  return { agent: diffAgent ?? agent, at: place };
}

function compare(context: Context, views: readonly [View, View], places: readonly [Place, Place]): void {
  const messages = diffViews(...views);
  if (context.json) {
    const [before, after] = [0, 1].map((side) => {
      const { agent, at = null } = places[side] as Place;
      const { report } = views[side] as View;
      return { agent, at, tokens: report.tokens, requestHash: report.requestHash };
    });
    context.value({ before, after, messages });
    return;
  }
  const named = ({ agent, at }: Place) => `${agent} ${at === undefined ? 'now' : `at ${at}`}`;
  context.line(renderDiff(messages, views, [named(places[0]), named(places[1])], context.palette));
}

/** One asks a daemon, the other its files: what belongs to the other way is refused. */
function refuseIgnored({ options }: Context, { config }: ExplainOptions): void {
  if (options.data === undefined) {
    if (config !== undefined)
      throw noEffect('config', 'add --data: a daemon answers by its own configuration');
    return;
  }
  const ofServer = Object.keys(options).find((name) => /^(nats.|prefix$)/.test(name));
  if (ofServer !== undefined) throw noEffect(ofServer, 'leave it out: with --data no server is asked');
  if (options.nats === undefined) return;
  throw new ParleyError('USAGE', '--nats and --data exclude each other here', {
    hint: 'ask the daemon with --nats, or read its files with --data',
  });
}

type Look = (place: Place) => Promise<View>;

async function looker(
  context: Context,
  conversation: string,
  { config: folder }: ExplainOptions,
): Promise<Look> {
  if (context.options.data === undefined) {
    return (place) => withDaemon(context, (client) => client.request('view', { conversation, ...place }));
  }
  const config = await loadConfig(context, folder);
  context.note(`configuration: ${config.directory}`); // which it is decides what the request is made of
  const { explainOffline } = await context.rooms.daemon();
  const dataDirectory = config.daemon.data;
  return ({ agent, at }) =>
    explainOffline({ dataDirectory, config, conversation, agent, ...(at === undefined ? {} : { at }) });
}
