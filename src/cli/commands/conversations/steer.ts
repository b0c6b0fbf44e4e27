import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Argument, type Command } from 'commander';
import {
  type ConversationDetail,
  FEEDBACK,
  type FeedbackValue,
  MODES,
  type Mode,
  ParleyError,
  type RequestOf,
} from '../../../client/index.ts';
import type { Act, Context } from '../../context.ts';
import { ask } from '../../find-daemon.ts';
import { isOfConversation } from '../../follow/post-and-wait.ts';
import { conversationId, entryIndex, listOf, ofConversation, parser } from '../../options/options.ts';
import { type ActorOptions, actorOf, addActorOptions, addPublisherOption } from '../../options/publisher.ts';
import { renderState } from '../../render/state.ts';

/** Commands that change the state of a conversation. */

export function addPhase(program: Command, act: Act): void {
  const names = 'chat, brainstorm, plan, execute, verification, chores, reflection, or one of your own';
  const added = ofConversation(program, 'phase', 'enter a phase').argument('<phase>', names);
  addActorOptions(added);
  ask(act, added, async (context, conversation: string, phase: string, options: ActorOptions) => {
    const request = { conversation, phase, ...actorOf(context, options) };
    context.result(await context.request('phase', request), renderState);
  });
}

export function addFeedback(program: Command, act: Act): void {
  const added = ofConversation(program, 'feedback', 'rate an answer; the newest rating of each person counts')
    .argument('<index>', 'the index of the answer', entryIndex)
    .addArgument(new Argument('<rating>', 'none takes it back').choices(FEEDBACK))
    .option('--note <text>', 'what was right or wrong');
  addActorOptions(added);
  ask(
    act,
    added,
    async (
      context,
      conversation: string,
      index: number,
      value: FeedbackValue,
      options: ActorOptions & Pick<RequestOf<'feedback'>, 'note'>,
    ) => {
      const request = { conversation, index, value, note: options.note, ...actorOf(context, options) };
      context.result(await context.request('feedback', request), () => `${conversation} ${index}: ${value}`);
    },
  );
}

type ModeOptions = ActorOptions & Pick<RequestOf<'mode'>, 'agent' | 'workflow' | 'input'>;

export function addMode(program: Command, act: Act): void {
  const added = ofConversation(program, 'mode', 'enter a mode')
    .addArgument(new Argument('<mode>').choices(MODES))
    .option('--agent <slug>', 'the agent that gets the floor')
    .option('--workflow <id>', 'the workflow, with mode run')
    .option('--input <text>', 'the first message of the run (default: the next message to its agent)');
  addActorOptions(added);
  ask(act, added, async (context, conversation: string, mode: Mode, options: ModeOptions) => {
    const { agent, workflow, input } = options;
    const request = { conversation, mode, agent, workflow, input, ...actorOf(context, options) };
    context.result(await context.request('mode', request), renderState);
  });
}

export function addFork(program: Command, act: Act): void {
  const about = 'continue a copy of a conversation from any entry; can be repeated';
  const added = ofConversation(program, 'fork', about)
    .requiredOption('--as <id>', 'the id of the copy', conversationId)
    .option('--at <index>', 'the last entry of the copy (default: the newest)', entryIndex);
  type ForkOptions = Pick<ActorOptions, 'publisher'> & Pick<RequestOf<'fork'>, 'as' | 'at'>;
  addPublisherOption(added);
  ask(act, added, async (context, conversation: string, { as, at, ...who }: ForkOptions) => {
    const request = { conversation, as, at, ...actorOf(context, who) };
    context.result(await context.request('fork', request), renderState);
  });
}

const SWITCHES = {
  stop: { about: 'abort running turns; none starts until `resume`', done: 'is stopped' },
  resume: { about: 'let turns run again', done: 'is resumed' },
} as const;

export const addStop = (program: Command, act: Act): void => addSwitch(program, act, 'stop');
export const addResume = (program: Command, act: Act): void => addSwitch(program, act, 'resume');

function addSwitch(program: Command, act: Act, verb: keyof typeof SWITCHES): void {
  const { about, done } = SWITCHES[verb];
  const added = ofConversation(program, verb, about).argument(
    '[agent]',
    'only this agent (default: all agents)',
  );
  addActorOptions(added);
  ask(act, added, async (context, conversation: string, agent: string | undefined, who: ActorOptions) => {
    const before = verb === 'resume' ? await context.request('conversation', { conversation }) : null;
    const detail = await context.request(verb, { conversation, agent, ...actorOf(context, who) });
    context.result(detail, () => `${conversation}: ${agent ?? 'the conversation'} ${done}`);
    if (before) noteLimits(context, before, agent);
  });
}

/** Limits of the conversation end each new turn too. */
function noteLimits(context: Context, { agents }: ConversationDetail, agent: string | undefined): void {
  for (const [slug, { limit }] of Object.entries(agents ?? {}))
    if (isOfConversation(limit) && (agent ?? slug) === slug)
      context.note(
        `parley: limits.${limit} ended the last turn of ${slug}, and ends each new one until it is raised in parley.yaml and \`${context.command('reload')}\` was run`,
      );
}

interface HireOptions
  extends ActorOptions,
    Pick<RequestOf<'hire'>, 'name' | 'description' | 'tools' | 'model'> {
  readonly personaFile: string;
  readonly budgetTokens?: number;
  readonly budgetUsd?: number;
}

export function addHire(program: Command, act: Act): void {
  const added = ofConversation(program, 'hire', 'add an agent to a conversation; can be repeated')
    .argument('<slug>', 'the slug of the new agent')
    .requiredOption('--persona-file <file>', 'its instructions')
    .option('--name <name>', 'its name in the thread (default: from the slug)')
    .option('--description <text>', 'what it is for, in one line that the other agents read')
    .option('--tools <names>', 'its tools, separated by commas (default: none)', listOf('names of tools'))
    .option('--model <name>', 'a configured model (default: that of the default agent)')
    .option('--budget-tokens <number>', 'tokens that it and the agents that it hires may use', amount)
    .option('--budget-usd <number>', 'US dollars that they may use', amount);
  addActorOptions(added);
  ask(act, added, async (context, conversation: string, slug: string, options: HireOptions) => {
    const persona = await personaIn(resolve(context.io.workingDirectory, options.personaFile));
    const { name, description, tools, model, budgetTokens: tokens, budgetUsd: usd } = options;
    const budget = tokens === undefined && usd === undefined ? undefined : { tokens, usd };
    const agent = { slug, name, description, persona, tools, model, budget };
    const request = { conversation, ...agent, ...actorOf(context, options) };
    context.result(await context.request('hire', request), () => `${conversation}: ${slug} is hired`);
  });
}

export function addDismiss(program: Command, act: Act): void {
  const about = 'remove a hired agent, and those that it hired; can be repeated';
  const added = ofConversation(program, 'dismiss', about)
    .argument('<slug>', 'the hired agent')
    .option('--reason <text>', 'why');
  type DismissOptions = ActorOptions & Pick<RequestOf<'dismiss'>, 'reason'>;
  addActorOptions(added);
  ask(act, added, async (context, conversation: string, agent: string, options: DismissOptions) => {
    const request = { conversation, agent, reason: options.reason, ...actorOf(context, options) };
    context.result(await context.request('dismiss', request), () => `${conversation}: ${agent} is dismissed`);
  });
}

export async function personaIn(file: string): Promise<string> {
  return (await readFile(file, 'utf8').catch(unreadable)).trim();

  function unreadable(cause: unknown): never {
    throw new ParleyError('USAGE', `the persona cannot be read: ${file}`, {
      hint: 'name a text file',
      cause,
    });
  }
}

const amount = parser((value) => {
  const number = Number(value);
  return Number.isFinite(number) && number > 0 ? number : null;
}, 'Give a number above 0.');
