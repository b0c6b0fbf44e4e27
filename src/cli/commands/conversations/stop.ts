import type { Command } from 'commander';
import type { Act } from '../../context.ts';
import { withDaemon } from '../../find-daemon.ts';
import { isOfConversation } from '../../follow/post-and-wait.ts';
import { conversationId } from '../../options/options.ts';
import { type ActorOptions, actorOf, addActorOptions } from '../../options/publisher.ts';

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
