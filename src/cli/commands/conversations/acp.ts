import type { Command } from 'commander';
import { createIdSource } from '../../../kernel/index.ts';
import type { Act } from '../../context.ts';
import { openDaemon } from '../../find-daemon.ts';
import { type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';
import { renderFailure } from '../../render/text.ts';

/** Parley as an agent inside an editor. stdout has the protocol alone. */
export function addAcp(program: Command, act: Act): void {
  const added = program
    .command('acp')
    .description('be an agent of an editor: the Agent Client Protocol on stdin and stdout');
  act(addActorOptions(added), async (context, options: ActorOptions) => {
    const { serveAcp } = await import('../../../acp/index.ts'); // with the protocol's package, which a start does not load
    const { stdin: input, stdout: output, workingDirectory } = context.io;
    await serveAcp({
      input,
      output,
      workingDirectory,
      newId: createIdSource(),
      actor: actorOf(context, options),
      connect: () =>
        openDaemon(context).catch((error: unknown) => {
          context.note(renderFailure(context.failure(error))); // the log of the editor
          throw error;
        }),
      explain: context.failure,
      command: context.command,
    });
  });
}
