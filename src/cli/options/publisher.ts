import type { Command } from 'commander';
import { NAME_PATTERN } from '../../client/index.ts';
import { resolveDaemonAddress } from '../../config/index.ts';
import type { Context } from '../context.ts';
import { configFlags, publisherName } from './options.ts';

/** The options of every command that acts for a person. `docs/guides/security.md` defines the rule. */

export interface ActorOptions {
  readonly as?: string;
  readonly publisher?: string;
}

export interface Actor {
  readonly publisher: string;
  readonly author?: { readonly name: string };
}

export function addActorOptions(command: Command): Command {
  command.option('--as <name>', 'the name shown as author; it grants no rights');
  return addPublisherOption(command);
}

export function addPublisherOption(command: Command): Command {
  return command.option(
    '--publisher <name>',
    'the publisher (default: the user on the server, or the system user)',
    publisherName,
  );
}

export function actorOf(context: Context, { as, publisher }: ActorOptions): Actor {
  const own = publisher ?? defaultPublisher(context);
  return { publisher: own, ...(as === undefined ? {} : { author: { name: as } }) };
}

/**
 * Prefers the name of the NATS user, because a server binds publishers to credentials by it. Characters that a subject may
 * not contain are replaced: `jo.doe` becomes `jo_doe`.
 */
function defaultPublisher({ io, options }: Context): string {
  const flags = configFlags(options);
  const { env, workingDirectory } = io;
  const { nats, user } = resolveDaemonAddress({ env, flags, workingDirectory });
  const name = nats?.user ?? options.natsUser ?? user ?? io.userName ?? '';
  const safe = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 128);
  return NAME_PATTERN.test(safe) ? safe : 'cli';
}
