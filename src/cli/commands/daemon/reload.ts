import type { Command } from 'commander';
import { type AnswerOf, type ParleyClient, teamChangeText } from '../../../client/index.ts';
import type { Act, Context } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { actorOf, addPublisherOption } from '../../options/publisher.ts';

/** The exit code when another daemon keeps its configuration. */
const INCOMPLETE = 1;

export function addReload(program: Command, act: Act): void {
  const added = program
    .command('reload')
    .description('read the configuration again in the running daemon; can be repeated');
  addPublisherOption(added).action((options: { publisher?: string }, command: Command) =>
    act(command, (context) => withDaemon(context, (client) => reload(context, client, options))),
  );
}

async function reload(
  context: Context,
  client: ParleyClient,
  options: { publisher?: string },
): Promise<number> {
  const answer = await client.request('reload', actorOf(context, options));
  if (context.json) context.value(answer);
  else for (const line of renderReload(answer)) context.line(line);
  return answer.daemons?.some(({ error }) => error !== undefined) ? INCOMPLETE : 0;
}

function renderReload({ agents, settings, conversations, daemons = [] }: AnswerOf<'reload'>): string[] {
  if (agents.length + settings.length === 0)
    return ['the configuration is unchanged', ...daemons.map(daemonText)];
  return [
    ...agents.map(teamChangeText),
    ...(settings.length > 0 ? [`settings: ${settings.join(', ')}`] : []),
    `recorded in ${conversations} open conversation${conversations === 1 ? '' : 's'}`,
    ...daemons.map(daemonText),
  ];
}

function daemonText({ daemon, error }: { readonly daemon: string; readonly error?: string }): string {
  return error === undefined
    ? `daemon ${daemon}: reloaded`
    : `daemon ${daemon} keeps its configuration: ${error}`;
}
