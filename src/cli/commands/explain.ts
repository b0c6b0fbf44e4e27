import type { Command } from 'commander';
import { ParleyError, type View } from '../../client/index.ts';
import type { Act } from '../act.ts';
import type { Context } from '../context.ts';
import { withDaemon } from '../find-daemon.ts';
import { loadConfig } from '../load-config.ts';
import { conversationId, entryIndex } from '../options.ts';
import { renderView } from '../render/view.ts';

interface ExplainOptions {
  readonly agent: string;
  readonly at?: number;
  readonly config?: string;
}

export function addExplain(program: Command, act: Act): void {
  program
    .command('explain')
    .description('print the exact request that an agent’s model is sent; with --data no daemon is needed')
    .argument('<conversation>', 'its id', conversationId)
    .requiredOption('--agent <slug>', 'whose view')
    .option('--at <index>', 'as of this entry; an answer of the agent: the request behind it', entryIndex)
    .option('--config <dir>', 'the configuration, with --data (PARLEY_CONFIG; default: config)')
    .action((conversation: string, options: ExplainOptions, command: Command) =>
      act(command, async (context) => {
        refuseBoth(context);
        const view =
          context.options.data === undefined
            ? await online(context, conversation, options)
            : await offline(context, conversation, options);
        if (context.json) context.value({ messages: view.messages, report: view.report });
        else context.line(renderView(view, context.palette));
        return 0;
      }),
    );
}

/** One asks a daemon, the other its files: whoever gives both would be told of one and think of the other. */
function refuseBoth({ options }: Context): void {
  if (options.nats === undefined || options.data === undefined) return;
  throw new ParleyError('USAGE', '--nats and --data exclude each other here', {
    hint: 'ask the daemon with --nats, or read its files with --data',
  });
}

function online(context: Context, conversation: string, { agent, at }: ExplainOptions): Promise<View> {
  return withDaemon(context, (client) => client.request('view', { conversation, agent, at }));
}

/** From the files alone. */
async function offline(
  context: Context,
  conversation: string,
  { agent, at, config: folder }: ExplainOptions,
): Promise<View> {
  const config = await loadConfig(context, folder);
  const { explainOffline } = await context.rooms.daemon();
  const dataDirectory = config.daemon.data;
  return explainOffline({ dataDirectory, config, conversation, agent, ...(at === undefined ? {} : { at }) });
}
