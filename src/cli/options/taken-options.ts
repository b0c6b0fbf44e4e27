import type { Command } from 'commander';
import { ParleyError, urlWithoutSecrets } from '../../client/index.ts';
import { flagOf, resolveDaemonAddress } from '../../config/index.ts';
import type { Io } from '../io.ts';
import type { GlobalOptions } from './options.ts';

/**
 * The global options that each command accepts to find a daemon, a server or files. A command refuses all others, so that
 * none is ignored silently; a command that is not listed accepts none. `--json` and `--verbose` apply to every command.
 * Suggested commands are completed with those by which this command found its daemon.
 */

interface Taken {
  readonly options: RegExp;
  /** The next step after a refused option. */
  readonly hint: string;
  /** `--data` is only used to find the server, so it has no effect when the server is given. */
  readonly isEither?: true;
}

const ADDRESS = /^(data$|nats|prefix$)/;
const NONE: Taken = {
  options: /^$/,
  hint: 'leave it out: this command uses no daemon, no server and no data',
};
const ANY: Taken = { options: ADDRESS, hint: '' };
const FILES: Taken = {
  options: /^data$/,
  hint: 'this command uses the files of a data directory: give it with --data; `parley migrate` moves conversations between files and a nats-server',
};
const UP: Taken = {
  options: /^(data$|nats)/,
  hint: 'set `subjectPrefix` in parley.yaml or PARLEY_SUBJECT_PREFIX',
};

const TAKEN_BY: readonly (readonly [commands: string, Taken])[] = [
  [
    'chat say run ls turns show tail feedback file record fork hire dismiss reload what-if phase mode stop resume approvals approve deny resolve rm search status agents dead acp join',
    { ...ANY, isEither: true },
  ],
  ['explain doctor migrate backup', ANY],
  ['fsck export import', FILES],
  ['mcp', { options: /^data$/, hint: 'logins are in the data directory of the daemon: give it with --data' }],
  ['token', { options: /^data$/, hint: 'give the data directory of the daemon with --data' }],
  ['up', UP],
];
const TAKEN: ReadonlyMap<string, Taken> = new Map(
  TAKEN_BY.flatMap(([commands, taken]) => commands.split(' ').map((name) => [name, taken] as const)),
);

/** Throws `USAGE` for an option that this command would ignore. */
export function refuseIgnored(command: Command, io: Io): void {
  const { options, hint, isEither } = takenBy(command);
  const given = command.optsWithGlobals<GlobalOptions>();
  const ignored = Object.keys(given).find((name) => ADDRESS.test(name) && !options.test(name));
  if (ignored !== undefined) throw noEffect(ignored, hint);
  if (isEither && given.data !== undefined) refuseBesideServer(given, io);
}

function refuseBesideServer(given: GlobalOptions, { env, workingDirectory }: Io): void {
  const { nats } = resolveDaemonAddress({ env, flags: given, workingDirectory });
  if (nats === null) return;
  const variable = env.PARLEY_NATS_URL ? 'PARLEY_NATS_URL' : 'PARLEY_NATS';
  const by =
    given.nats === undefined
      ? `${variable} names the server; or unset ${variable}`
      : '--nats names the server';
  throw noEffect('data', `leave it out: ${by}`);
}

/** `dead show` takes what `dead` takes. */
function takenBy(command: Command): Taken {
  return command.parent?.parent ? takenBy(command.parent) : (TAKEN.get(command.name()) ?? NONE);
}

export function noEffect(option: string, hint: string): ParleyError {
  return new ParleyError('USAGE', `${flagOf(option)} has no effect here`, { hint });
}

/** The options that select the daemon. Never a password or a token. */
const KEPT: ReadonlySet<string> = new Set([
  ...['data', 'nats', 'natsUser', 'natsPasswordFile', 'natsTokenFile', 'natsCredentials', 'natsNkey'],
  ...['natsTlsCa', 'natsTlsCert', 'natsTlsKey', 'natsInboxPrefix', 'prefix'],
]);

/** `words`: the command without the program's name. */
export function commandLine(io: Pick<Io, 'invocation'>, options: GlobalOptions, words: string): string {
  const { options: taken, isEither } = TAKEN.get(words.split(' ', 1)[0] ?? '') ?? ANY;
  const isNamed = options.nats !== undefined && options.nats !== 'managed';
  const flags = [...KEPT].flatMap((name) => {
    const value = options[name as keyof GlobalOptions];
    if (typeof value !== 'string' || value === 'managed' || !taken.test(name)) return [];
    if (isEither && isNamed && name === 'data') return [];
    return [flagOf(name), quoted(name === 'nats' ? urlWithoutSecrets(value) : value)];
  });
  return [io.invocation, words, ...flags].join(' ');
}

/** Completes each marked command in a text, also of the daemon: `parley ls` in backticks. */
export function withFlags(io: Pick<Io, 'invocation'>, options: GlobalOptions, text: string): string {
  return text.replace(/`parley ([^`]+)`/g, (_, words: string) => `\`${commandLine(io, options, words)}\``);
}

/** For a POSIX shell. */
export function quoted(word: string): string {
  return /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
