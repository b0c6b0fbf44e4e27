import { urlWithoutSecrets } from '../../client/index.ts';
import type { Io } from '../io.ts';
import type { GlobalOptions } from './options.ts';
import { isTaken } from './taken-options.ts';

/**
 * Completes suggested commands with the flags by which this command found its daemon. Any text, also of the daemon, marks a
 * command with backticks: `parley ls`.
 */

/** The flags that select the daemon. Never a password or a token. */
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

/** Completes each marked command in the text. */
export function withFlags(io: Pick<Io, 'invocation'>, options: GlobalOptions, text: string): string {
  return text.replace(MARKED, (_, words: string) => `\`${commandLine(io, options, words)}\``);
}

const flagOf = (name: string) => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** For a POSIX shell. */
export function quoted(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
