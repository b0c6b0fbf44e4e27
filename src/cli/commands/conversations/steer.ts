import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Argument, type Command, InvalidArgumentError } from 'commander';
import { MODES, type Mode, ParleyError } from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { isOfConversation } from '../../follow/post-and-wait.ts';
import { conversationId } from '../../options/options.ts';
import { type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';
import { renderState } from '../../render/conversation.ts';

export function addPhase(program: Command, act: Act): void {
  const added = program
    .command('phase')
    .description('enter a phase')
    .argument('<conversation>', 'its id', conversationId)
    .argument(
      '<phase>',
      'chat, brainstorm, plan, execute, verification, chores, reflection, or one of your own',
    );
  addActorOptions(added).action(
    (conversation: string, phase: string, options: ActorOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const detail = await client.request('phase', {
            conversation,
            phase,
            ...actorOf(context, options),
          });
          if (context.json) context.value(detail);
          else context.line(renderState(detail));
          return 0;
        }),
      ),
  );
}

interface ModeOptions extends ActorOptions {
  readonly agent?: string;
  readonly workflow?: string;
  readonly input?: string;
}

export function addMode(program: Command, act: Act): void {
  const added = program
    .command('mode')
    .description('enter a mode')
    .argument('<conversation>', 'its id', conversationId)
    .addArgument(new Argument('<mode>').choices(MODES))
    .option('--agent <slug>', 'the agent that gets the floor')
    .option('--workflow <id>', 'the workflow, with mode run')
    .option('--input <text>', 'the first message of the run (default: the next message to its agent)');
  addActorOptions(added).action(
    (conversation: string, mode: Mode, { agent, workflow, input, ...who }: ModeOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const detail = await client.request('mode', {
            conversation,
            mode,
            agent,
            workflow,
            input,
            ...actorOf(context, who),
          });
          if (context.json) context.value(detail);
          else context.line(renderState(detail));
          return 0;
        }),
      ),
  );
}

interface Switch {
  readonly verb: 'stop' | 'resume';
  readonly description: string;
  readonly done: string;
}

export const addStop = (program: Command, act: Act): void =>
  addSwitch(program, act, {
    verb: 'stop',
    description: 'abort running turns; none starts until `resume`',
    done: 'is stopped',
  });

export const addResume = (program: Command, act: Act): void =>
  addSwitch(program, act, { verb: 'resume', description: 'let turns run again', done: 'is resumed' });

function addSwitch(program: Command, act: Act, { verb, description, done }: Switch): void {
  const added = program
    .command(verb)
    .description(description)
    .argument('<conversation>', 'its id', conversationId)
    .argument('[agent]', 'only this agent (default: all agents)');
  addActorOptions(added).action(
    (conversation: string, agent: string | undefined, options: ActorOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const actor = actorOf(context, options);
          const before = verb === 'resume' ? await client.request('conversation', { conversation }) : null;
          const detail = await client.request(verb, { conversation, agent, ...actor });
          if (context.json) context.value(detail);
          else context.line(`${conversation}: ${agent ?? 'the conversation'} ${done}`);
          for (const [slug, { limit }] of Object.entries(before?.agents ?? {}))
            if (isOfConversation(limit) && (agent ?? slug) === slug)
              context.note(
                `parley: limits.${limit} ended the last turn of ${slug}, and ends each new one until it is raised in parley.yaml and \`${context.command('reload')}\` was run`,
              );
          return 0;
        }),
      ),
  );
}

interface HireOptions extends ActorOptions {
  readonly personaFile: string;
  readonly name?: string;
  readonly description?: string;
  readonly tools?: string[];
  readonly model?: string;
  readonly budgetTokens?: number;
  readonly budgetUsd?: number;
}

export function addHire(program: Command, act: Act): void {
  const added = program
    .command('hire')
    .description('add an agent to a conversation; can be repeated')
    .argument('<conversation>', 'its id', conversationId)
    .argument('<slug>', 'the slug of the new agent')
    .requiredOption('--persona-file <file>', 'its instructions')
    .option('--name <name>', 'its name in the thread (default: from the slug)')
    .option('--description <text>', 'what it is for, in one line that the other agents read')
    .option('--tools <names>', 'its tools, separated by commas (default: none)', toolNames)
    .option('--model <name>', 'a configured model (default: that of the default agent)')
    .option('--budget-tokens <number>', 'tokens that it and the agents that it hires may use', amount)
    .option('--budget-usd <number>', 'US dollars that they may use', amount);
  addActorOptions(added).action(
    (conversation: string, slug: string, options: HireOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const persona = await personaIn(resolve(context.io.workingDirectory, options.personaFile));
          const { name, description, tools, model, budgetTokens: tokens, budgetUsd: usd } = options;
          const budget = tokens === undefined && usd === undefined ? undefined : { tokens, usd };
          const agent = { slug, name, description, persona, tools, model, budget };
          const { as, publisher } = options;
          const detail = await client.request('hire', {
            conversation,
            ...agent,
            ...actorOf(context, { ...(as && { as }), ...(publisher && { publisher }) }),
          });
          if (context.json) context.value(detail);
          else context.line(`${conversation}: ${slug} is hired`);
          return 0;
        }),
      ),
  );
}

interface DismissOptions extends ActorOptions {
  readonly reason?: string;
}

export function addDismiss(program: Command, act: Act): void {
  const added = program
    .command('dismiss')
    .description('remove a hired agent, and those that it hired; can be repeated')
    .argument('<conversation>', 'its id', conversationId)
    .argument('<slug>', 'the hired agent')
    .option('--reason <text>', 'why');
  addActorOptions(added).action(
    (conversation: string, agent: string, { reason, ...actor }: DismissOptions, command: Command) =>
      act(command, (context) =>
        withDaemon(context, async (client) => {
          const request = { conversation, agent, reason, ...actorOf(context, actor) };
          const detail = await client.request('dismiss', request);
          if (context.json) context.value(detail);
          else context.line(`${conversation}: ${agent} is dismissed`);
          return 0;
        }),
      ),
  );
}

async function personaIn(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (cause) {
    throw new ParleyError('USAGE', `the persona cannot be read: ${file}`, {
      hint: 'name a text file with --persona-file',
      cause,
    });
  }
}

function toolNames(value: string): string[] {
  const names = value.split(',').map((name) => name.trim());
  if (names.every((name) => name !== '')) return names;
  throw new InvalidArgumentError('Give names of tools, separated by commas: recall,fs_read.');
}

function amount(value: string): number {
  const number = Number(value);
  if (Number.isFinite(number) && number > 0) return number;
  throw new InvalidArgumentError('Give a number above 0.');
}
