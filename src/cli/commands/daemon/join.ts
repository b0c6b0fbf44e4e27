import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { type ParleyClient, ParleyError, SLUG_PATTERN } from '../../../client/index.ts';
import type { Act, Context } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { matching, parser } from '../../options/options.ts';

/** Runs a coding agent here, as a participant. */

interface JoinOptions {
  readonly command: string;
  readonly cwd?: string;
  readonly idleSeconds: number;
}

export function addJoin(program: Command, act: Act): void {
  const added = program
    .command('join')
    .description('run a coding agent here, next to its files, as an agent of a team')
    .argument(
      '<agent>',
      'the slug of an agent with runtime: bus',
      matching(SLUG_PATTERN, 'expected the slug of an agent'),
    )
    .requiredOption(
      '--command <command>',
      'starts it; it speaks the Agent Client Protocol on its standard streams',
    )
    .option('--cwd <folder>', 'where it works (default: here)')
    .option('--idle-seconds <seconds>', 'a turn without any sign of it for so long fails', seconds, 600);
  act(added, (context, name: string, options: JoinOptions) => join(context, name, options));
}

const seconds = parser((text) => (Number(text) > 0 ? Number(text) : null), 'expected a number of seconds');

async function join(
  context: Context,
  name: string,
  { command, cwd, idleSeconds }: JoinOptions,
): Promise<number> {
  const { io } = context;
  const directory = resolve(io.workingDirectory, cwd ?? '.');
  if (!existsSync(directory))
    throw new ParleyError('USAGE_FILE', `the agent cannot work in ${directory}: it does not exist`, {
      hint: 'name a folder: --cwd FOLDER',
    });
  return withDaemon(context, async ({ client }) => {
    const env = Object.fromEntries(Object.entries(io.env).filter(([key]) => !key.startsWith('PARLEY_')));
    const { CodingAgent } = await import('../../../acp/index.ts'); // with packages that no other command loads
    const agent = new CodingAgent({
      command: ['/bin/sh', '-c', `exec ${command}`],
      directory,
      idleSeconds,
      env: env as Record<string, string>,
      files: {
        read: async (...file) => client.download(...file, { publisher: name }),
        keep: (_conversation, bytes, file) =>
          client.upload(bytes, { publisher: name, ...(file.name && { name: file.name }) }),
      },
    });
    const running = await client.agent(name, (turn) => agent.handle(turn));
    const facts = { agent: name, command, directory };
    context.result(facts, () => `${name} runs \`${command}\` in ${directory}; Ctrl+C ends it`);
    noteNoTurns(context, client, name).catch(() => {}); // whose user may not ask hears nothing
    await new Promise<void>((done) => {
      const off = io.onSignal(() => {
        off();
        done();
      });
    });
    await agent.close();
    await running.stop();
    return 0;
  });
}

/** Turns come to an agent of the team with `runtime: bus` only. The program stays: a reload may add it. */
async function noteNoTurns({ note }: Context, client: ParleyClient, name: string): Promise<void> {
  const { agents } = await client.request('agents', {});
  const found = agents.find(({ slug }) => slug === name);
  if (found?.runtime === 'bus') return;
  const joinable = agents.filter(({ runtime }) => runtime === 'bus').map(({ slug }) => slug);
  const why = found ? `${name} has no runtime: bus` : `the team has no agent ${name}`;
  const those = joinable.length === 0 ? 'no agent has runtime: bus' : `those that can join: ${joinable}`;
  note(`${why}, so no turn comes here: correct the name, or its file and \`parley reload\` (${those})`);
}
