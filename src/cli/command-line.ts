import { urlWithoutSecrets } from '../client/index.ts';
import type { Io } from './io.ts';
import type { GlobalOptions } from './options.ts';
import { isTaken } from './taken-options.ts';

/**
 * Commands that a text suggests, as they must be typed: with the flags by which this command found its daemon.
 * A text marks them with backticks, wherever it was written: `parley ls`.
 */

/** Flags that lead to the same daemon. Never a password or a token. */
const KEPT = [
  'data',
  'nats',
  'natsUser',
  'natsPasswordFile',
  'natsTokenFile',
  'natsCredentials',
  'natsCreds',
  'natsNkey',
  'natsTlsCa',
  'natsCa',
  'natsTlsCert',
  'natsCert',
  'natsTlsKey',
  'natsKey',
  'natsInboxPrefix',
  'prefix',
] as const satisfies readonly (keyof GlobalOptions)[];

const MARKED = /`parley ([^`]+)`/g;

/** `words`: the command without the program's name. */
export function commandLine(io: Pick<Io, 'invocation'>, options: GlobalOptions, words: string): string {
  const flags = KEPT.flatMap((name) => {
    const value = options[name];
    if (value === undefined || value === 'managed' || !isTaken(words, name, options)) return [];
    return [flagOf(name), quoted(name === 'nats' ? urlWithoutSecrets(value) : value)];
  });
  return [io.invocation, words, ...flags].join(' ');
}

/** The text with each marked command as it must be typed. */
export function withFlags(io: Pick<Io, 'invocation'>, options: GlobalOptions, text: string): string {
  return text.replace(MARKED, (_, words: string) => `\`${commandLine(io, options, words)}\``);
}

const flagOf = (name: string) => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** For a POSIX shell. */
export function quoted(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
