import type { Command } from 'commander';
import { ParleyError, type PostMessage } from '../../../client/index.ts';
import { createIdSource } from '../../../kernel/index.ts';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { postAndWait, postOnly } from '../../follow/post-and-wait.ts';
import { conversationId } from '../../options/options.ts';
import { type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';
import { textOf } from './say.ts';

interface RunOptions extends ActorOptions {
  readonly conversation?: string;
  readonly id?: string;
  readonly wait?: boolean;
  readonly operator?: boolean;
}

export function addRun(program: Command, act: Act): void {
  const added = program
    .command('run')
    .description('start a workflow with its input; with --wait until the run ends')
    .argument('<workflow>', 'its id: the name of its file')
    .argument('<input...>', 'the text for the agent of the first node; - reads it from stdin')
    .option('--conversation <id>', 'where it runs (default: a new conversation)', conversationId)
    .option('--id <id>', 'a run with the same id and conversation is started only once')
    .option(
      '--wait',
      'stream the answers until no turn runs; exit code 0 if a node ended the run, 1 if it waits for a person',
    )
    .option('--operator', 'start it as an operator, who may start any workflow');
  addActorOptions(added).action((workflow: string, words: string[], options: RunOptions, command: Command) =>
    act(command, async (context) => {
      const content = await textOf(context, words, 'run WORKFLOW');
      const { conversation = createIdSource()(), id, wait, operator } = options;
      const message: PostMessage = { conversation, content, workflow, id, ...actorOf(context, options) };
      return withDaemon(context, async (client) => {
        if (wait) context.note(`conversation ${conversation}`);
        const start = wait ? postAndWait : postOnly;
        return start(context, client, message, operator ? { asOperator: true } : {}).catch(
          (error: unknown) => {
            throw withOperator(error);
          },
        );
      });
    }),
  );
}

/** Adds an option of this CLI to the hint of a refusal. */
function withOperator(error: unknown): unknown {
  if (!(error instanceof ParleyError) || error.code !== 'FORBIDDEN') return error;
  const hint = `${error.hint}\nwith the credentials of an operator: --operator`;
  return new ParleyError(error.code, error.message, { hint, cause: error });
}
