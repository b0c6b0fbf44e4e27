import type { Command } from 'commander';
import { type Entry, ParleyError } from '../../../client/index.ts';
import { tracesUrl } from '../../../config/index.ts';
import type { Act, Context } from '../../context.ts';
import { dataDirectoryOf, withDaemon } from '../../find-daemon.ts';
import { logEntries } from '../../follow/log-pages.ts';
import { conversationId } from '../../options/options.ts';

interface TracesOptions {
  readonly endpoint?: string;
  readonly content?: boolean;
}

export function addTraces(program: Command, act: Act): void {
  program
    .command('traces')
    .description(
      'send the traces of a conversation to an OTLP collector, or print them; with --data no daemon is needed',
    )
    .argument('<conversation>', 'its id', conversationId)
    .option(
      '--endpoint <url>',
      'the collector (OTEL_EXPORTER_OTLP_ENDPOINT; default: print the spans as JSON Lines)',
    )
    .option('--content', 'include texts of posts and answers, and arguments and results of tools')
    .action((conversation: string, options: TracesOptions, command: Command) =>
      act(command, (context) => traces(context, conversation, options)),
    );
}

async function traces(
  context: Context,
  conversation: string,
  { endpoint, content = false }: TracesOptions,
): Promise<number> {
  const url = tracesUrl(context.io.env, endpoint);
  const service = context.io.env.OTEL_SERVICE_NAME || 'parleyd';
  const log = await logOf(context, conversation);
  const { exportTraces } = await context.dependencies.daemon();
  const spans = await exportTraces({ conversation, log, url, service, content });
  const count = new Set(spans.map(({ traceId }) => traceId)).size;
  if (url === null) for (const span of spans) context.value(span);
  else if (context.json) context.value({ conversation, spans: spans.length, traces: count, url });
  else context.line(`${conversation}: ${spans.length} spans in ${count} traces sent to ${url}`);
  return 0;
}

/** With --data from its files, else from the daemon. */
async function logOf(
  context: Context,
  conversation: string,
): Promise<readonly Entry[] | { dataDirectory: string }> {
  if (context.options.data !== undefined) {
    if (context.options.nats === undefined) return { dataDirectory: dataDirectoryOf(context) };
    throw new ParleyError('USAGE', '--nats and --data exclude each other here', {
      hint: 'ask the daemon with --nats, or read its files with --data',
    });
  }
  return withDaemon(context, async (client) => {
    const entries: Entry[] = [];
    for await (const entry of logEntries(client, conversation, 0)) entries.push(entry);
    return entries;
  });
}
