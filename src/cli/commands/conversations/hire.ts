import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { ParleyError } from '../../../client/index.ts';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { conversationId } from '../../options/options.ts';
import { type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';

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
