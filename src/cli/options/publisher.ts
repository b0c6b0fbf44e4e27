import type { Command } from 'commander';
import { NAME_PATTERN, ParleyError } from '../../client/index.ts';
import type { Context } from '../context.ts';
import { addressOf } from '../find-daemon.ts';
import { publisherName } from './options.ts';

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
function defaultPublisher(context: Context): string {
  const { io, options } = context;
  const { nats, user } = addressOf(context);
  const name = nats?.user ?? options.natsUser ?? user ?? io.userName ?? '';
  const safe = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 128);
  return NAME_PATTERN.test(safe) ? safe : 'cli';
}

/** Adds a hint of this CLI to a refusal with this code. */
export function withHint(error: unknown, code: string, hint: string): unknown {
  if (!(error instanceof ParleyError) || error.code !== code) return error;
  return new ParleyError(code, error.message, { hint: `${error.hint}\n${hint}`, cause: error });
}

export const withOperator = (error: unknown): unknown =>
  withHint(error, 'FORBIDDEN', 'with the credentials of an operator: --operator');
