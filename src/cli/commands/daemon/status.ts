import type { Command } from 'commander';
import { type AnswerOf, ParleyError, teamChangeText } from '../../../client/index.ts';
import { oneTimeCode } from '../../../kernel/index.ts';
import type { Act } from '../../context.ts';
import { asking, dataDirectoryOf, requireConnectionFile } from '../../find-daemon.ts';
import { type ActorOptions, actorOf, addPublisherOption } from '../../options/publisher.ts';
import { renderAgents, renderStatus } from '../../render/state.ts';

/** What a running daemon has and does: its state, its agents, its configuration, its token. */

/** The most rows of each group that a daemon answers, for --json. */
const MOST_ROWS = 200;

export function addStatus(program: Command, act: Act): void {
  program
    .command('status')
    .description('print what runs, waits or failed, the daemons, and what is connected')
    .action(
      act(
        asking(async (context, client) => {
          const status = await client.request('status', context.json ? { limit: MOST_ROWS } : {});
          context.result(status, () => renderStatus(status, context.palette));
        }),
      ),
    );
}

export function addAgents(program: Command, act: Act): void {
  program
    .command('agents')
    .description('list the agents')
    .action(
      act(
        asking(async (context, client) => {
          const { agents } = await client.request('agents', {});
          if (context.json) for (const agent of agents) context.value(agent);
          else context.line(renderAgents(agents, context.palette));
        }),
      ),
    );
}

export function addReload(program: Command, act: Act): void {
  const added = program
    .command('reload')
    .description('read the configuration again in the running daemon; can be repeated');
  addPublisherOption(added).action(
    act(
      asking(async (context, client, options: Pick<ActorOptions, 'publisher'>) => {
        const answer = await client.request('reload', actorOf(context, options));
        context.result(answer, renderReload);
        const isIncomplete = answer.daemons?.some(({ error }) => error !== undefined);
        return isIncomplete ? 1 : 0;
      }),
    ),
  );
}

function renderReload({ agents, settings, conversations, daemons = [] }: AnswerOf<'reload'>): string {
  const all = `recorded in ${conversations} open conversation${conversations === 1 ? '' : 's'}`;
  const changes = [
    ...agents.map(teamChangeText),
    ...(settings.length > 0 ? [`settings: ${settings.join(', ')}`] : []),
  ];
  const others = daemons.map(({ daemon, error }) =>
    error === undefined ? `daemon ${daemon}: reloaded` : `daemon ${daemon} keeps its configuration: ${error}`,
  );
  return [...(changes.length > 0 ? [...changes, all] : ['the configuration is unchanged']), ...others].join(
    '\n',
  );
}

export function addToken(program: Command, act: Act): void {
  program
    .command('token')
    .description('print the HTTP token of the running daemon')
    .option('--url', 'print an address that opens the console once')
    .action(
      act(async (context, options: { url?: boolean }) => {
        const { http, httpToken: token, codeKey } = await requireConnectionFile(dataDirectoryOf(context));
        if (!http || !token || !codeKey)
          throw new ParleyError('HTTP_TOKEN_MISSING', 'this daemon has no HTTP token of its own', {
            hint: http
              ? `open ${http} in a browser and enter a token of its configuration (PARLEY_HTTP_TOKEN, http.tokens, http.people), if it requires one`
              : 'HTTP is off: start the daemon with --http HOST:PORT',
          });
        const url = consoleUrl(http, codeKey);
        context.result({ token, url }, () => (options.url ? url : token));
      }),
    );
}

/** Browsers save addresses, so the code after `#` is valid only once. It is not sent to any server. */
export function consoleUrl(http: string, codeKey: string): string {
  return `${http}/#code=${oneTimeCode(codeKey)}`;
}
