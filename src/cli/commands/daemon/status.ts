import type { Command } from 'commander';
import { type ParleyClient, ParleyError } from '../../../client/index.ts';
import { sleep } from '../../../kernel/index.ts';
import type { Act, Context } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { renderAgents } from '../../render/agents.ts';
import { renderFailure } from '../../render/failure.ts';
import { renderStatus } from '../../render/status.ts';

const EVERY_MS = 2_000;
/** The most rows of each group that a daemon answers, for --json. */
const MOST_ROWS = 200;
/** A daemon that is away may start again. */
const AWAY: ReadonlySet<string> = new Set(['DAEMON_NOT_RUNNING', 'DAEMON_TIMEOUT']);
const CLEAR_SCREEN = '\u001b[H\u001b[2J\u001b[3J';

export function addStatus(program: Command, act: Act): void {
  program
    .command('status')
    .description('print what runs, waits or failed, the daemons, and what is connected')
    .option('--watch', 'print it again every two seconds')
    .action((options: { watch?: boolean }, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          if (options.watch === true) await watch(context, client);
          else await print(context, client);
          return 0;
        }),
      ),
    );
}

async function print(context: Context, client: ParleyClient, before = ''): Promise<void> {
  const status = await client.request('status', context.json ? { limit: MOST_ROWS } : {});
  if (context.json) context.value(status);
  else context.line(`${before}${renderStatus(status, context.palette)}`);
}

/** The watch continues: it shows a daemon that starts again. */
function printFailure(context: Context, error: unknown, before: string): void {
  if (!(error instanceof ParleyError) || !AWAY.has(error.code)) throw error;
  const failure = context.failure(error);
  if (context.json) context.value({ error: failure });
  else context.line(`${before}${renderFailure(failure)}`);
}

async function watch(context: Context, client: ParleyClient): Promise<void> {
  const abort = new AbortController();
  const release = context.io.onSignal(() => abort.abort());
  context.io.onOutputLost(() => abort.abort());
  const before = context.io.stdout.isTTY === true ? CLEAR_SCREEN : '';
  try {
    await print(context, client, before);
    for (;;) {
      await sleep(EVERY_MS, abort.signal);
      if (abort.signal.aborted) return;
      await print(context, client, before).catch((error) => printFailure(context, error, before));
    }
  } finally {
    release();
  }
}

export function addAgents(program: Command, act: Act): void {
  program
    .command('agents')
    .description('list the agents')
    .action((_options: object, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const { agents } = await client.request('agents', {});
          if (context.json) for (const agent of agents) context.value(agent);
          else context.line(renderAgents(agents, context.palette));
          return 0;
        }),
      ),
    );
}
