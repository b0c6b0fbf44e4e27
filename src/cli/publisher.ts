import { NAME_PATTERN } from '../client/index.ts';
import type { Context } from './context.ts';

/**
 * Who acts from this terminal: part of the subject of a post. A server that binds publishers to credentials does so
 * by the user's name, so that goes first. A system's user name may hold what a subject may not: `jo.doe` is `jo_doe`.
 */
export function publisherOf({ io, options }: Context): string {
  const name = options.natsUser ?? (io.env.PARLEY_NATS_USER || io.userName) ?? '';
  const safe = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 128);
  return NAME_PATTERN.test(safe) ? safe : 'cli';
}

/** Who posts, with a name of their own after `--as`. */
export function senderOf(context: Context, as: string | undefined) {
  return { publisher: publisherOf(context), ...(as === undefined ? {} : { author: { name: as } }) };
}
