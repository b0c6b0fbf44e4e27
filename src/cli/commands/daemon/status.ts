import type { Command } from 'commander';
import { type AnswerOf, ParleyError, type TokenOwner, teamChangeText } from '../../../client/index.ts';
import { oneTimeCode } from '../../../kernel/index.ts';
import type { Act } from '../../context.ts';
import { ask, dataDirectoryOf, requireConnectionFile } from '../../find-daemon.ts';
import { conversationId } from '../../options/options.ts';
import { type ActorOptions, actorOf, addPublisherOption } from '../../options/publisher.ts';
import { renderAgents, renderDetail, renderStatus } from '../../render/state.ts';

/** What a running daemon has and does: its state, its agents, its configuration, its token. */

/** The most rows of each group that a daemon answers, for --json. */
const MOST_ROWS = 200;

export function addStatus(program: Command, act: Act): void {
  const added = program
    .command('status')
    .description('print what runs, waits or failed, the daemons, and what is connected')
    .argument('[conversation]', 'its id: print the state of this one, and its files', conversationId);
  ask(act, added, async (context, conversation: string | undefined) => {
    if (conversation !== undefined) {
      const detail = await context.request('conversation', { conversation });
      context.result(detail, renderDetail);
      return;
    }
    const status = await context.request('status', context.json ? { limit: MOST_ROWS } : {});
    context.result(status, () => renderStatus(status, context.palette));
  });
}

export function addAgents(program: Command, act: Act): void {
  const added = program.command('agents').description('list the agents');
  ask(act, added, async (context) => {
    const { agents } = await context.request('agents', {});
    if (context.json) for (const agent of agents) context.value(agent);
    else context.line(renderAgents(agents, context.palette));
  });
}

export function addReload(program: Command, act: Act): void {
  const added = program
    .command('reload')
    .description('read the configuration again in the running daemon; can be repeated');
  ask(act, addPublisherOption(added), async (context, options: Pick<ActorOptions, 'publisher'>) => {
    const answer = await context.request('reload', actorOf(context, options));
    context.result(answer, renderReload);
    const isIncomplete = answer.daemons?.some(({ error }) => error !== undefined);
    return isIncomplete ? 1 : 0;
  });
}

function renderReload({ agents, settings, conversations, daemons = [] }: AnswerOf<'reload'>): string {
  const all = `recorded in ${conversations} open conversation${conversations === 1 ? '' : 's'}`;
  const changes = [
    ...agents.map((one) => teamChangeText(one)),
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
  const added = program
    .command('token')
    .description('print the HTTP token of the running daemon')
    .argument('[owner]', 'of a configured token: PUBLISHER/NAME, NAME, PUBLISHER or its role; with --url')
    .option('--url', 'print an address that signs a browser in once');
  act(added, async (context, owner: string | undefined, options: { url?: boolean }) => {
    const found = await requireConnectionFile(dataDirectoryOf(context));
    const { http, httpToken: token, codeKey, codeFor = [] } = found;
    if (!http) throw missing('this daemon has no HTTP server', 'start the daemon with --http HOST:PORT');
    if (!codeKey) throw missing('this daemon needs no HTTP token', `open ${http}`);
    const isOwn = token !== undefined && owner === undefined;
    if (!isOwn && !options.url)
      throw missing(
        'only the token that the daemon makes can be printed',
        `\`parley token OWNER --url\` prints an address that signs a browser in; there are ${ownersOf(codeFor).join(', ')}`,
      );
    const url = consoleUrl(http, codeKey, isOwn ? 0 : placeOf(owner, codeFor));
    context.result({ ...(isOwn && { token }), url }, () => (options.url || !isOwn ? url : token));
  });
}

function missing(message: string, hint: string): ParleyError {
  return new ParleyError('HTTP_TOKEN_MISSING', message, { hint });
}

/** The place of the token whose owner is named; the person, the publisher or the role names one alone. */
function placeOf(owner: string | undefined, all: readonly TokenOwner[]): number {
  const places = all.flatMap(({ role, publisher, name }, place) =>
    [`${publisher}/${name}`, name, publisher, role].includes(owner ?? '') ? [place] : [],
  );
  const [place, ...others] = places;
  if (place !== undefined && others.length === 0) return place;
  const problem =
    owner === undefined
      ? 'no owner is named'
      : `${others.length > 0 ? 'several tokens are' : 'no token is'} of ${owner}`;
  throw new ParleyError('TOKEN_OWNER_UNKNOWN', problem, { hint: `name one of ${ownersOf(all).join(', ')}` });
}

/** A name for each token that no other one has, as a shell takes it. */
function ownersOf(all: readonly TokenOwner[]): string[] {
  return all.map(({ role, publisher, name }) => {
    if (name) return / /.test(name) ? `"${publisher}/${name}"` : `${publisher}/${name}`;
    const isAlone = all.filter((other) => other.publisher === publisher).length === 1;
    return publisher !== null && isAlone ? publisher : role;
  });
}

/** Browsers save addresses, so the code after `#` is valid only once. It is not sent to any server. */
export function consoleUrl(http: string, codeKey: string, owner: number): string {
  return `${http}/#code=${oneTimeCode(codeKey, owner)}`;
}
