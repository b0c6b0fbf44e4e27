import type { Command } from 'commander';
import { NAME_PATTERN } from '../client/index.ts';
import { resolveDaemonAddress } from '../config/index.ts';
import type { Context } from './context.ts';
import { configFlags, publisherName } from './options.ts';

/** Who acts from this terminal. Every command that acts for a person takes these options; `docs/security.md` has the rule. */

export interface ActorOptions {
  readonly as?: string;
  readonly publisher?: string;
}

export interface Actor {
  readonly publisher: string;
  readonly author?: { readonly name: string };
}

export function addActorOptions(command: Command): Command {
  return command
    .option('--as <name>', 'the name to sign with; it gives no right')
    .option(
      '--publisher <name>',
      'who acts (default: the user on the server, else the system user)',
      publisherName,
    );
}

export function actorOf(context: Context, { as, publisher }: ActorOptions): Actor {
  const own = publisher ?? defaultPublisher(context);
  return { publisher: own, ...(as === undefined ? {} : { author: { name: as } }) };
}

/**
 * A server that binds publishers to credentials does so by the name of the user, so that is the first choice. A user
 * name may contain what a subject may not: `jo.doe` is `jo_doe`.
 */
function defaultPublisher({ io, options }: Context): string {
  const flags = configFlags(options);
  const { nats } = resolveDaemonAddress({ env: io.env, flags, workingDirectory: io.workingDirectory });
  const name = nats?.user ?? options.natsUser ?? (io.env.PARLEY_NATS_USER || io.userName) ?? '';
  const safe = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 128);
  return NAME_PATTERN.test(safe) ? safe : 'cli';
}
