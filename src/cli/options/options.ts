import { type Command, InvalidArgumentError } from 'commander';
import { NAME_PATTERN, ParleyError, urlWithoutSecrets } from '../../client/index.ts';
import { type ConfigFlags, flagOf, resolveDaemonAddress } from '../../config/index.ts';
import type { SkipUntil } from '../../daemon/index.ts';
import { DURATION_FORM, durationOf } from '../../kernel/index.ts';
import type { Io } from '../io.ts';

/**
 * The options of every command, and parsers of single values. An invalid value exits with 2.
 *
 * Each command accepts those of the global options by which it finds a daemon, a server or files, and refuses all others, so that
 * none is ignored silently; a command that is not listed accepts none. `--json` and `--verbose` apply to every command.
 * Suggested commands are completed with those by which this command found its daemon.
 */

export interface GlobalOptions extends ConfigFlags {
  readonly json?: boolean;
  readonly verbose?: boolean;
  readonly prefix?: string;
}

export function addGlobalOptions(program: Command): void {
  program
    .option('--json', 'print one JSON value per line')
    .option('--verbose', 'print more details on stderr')
    .option('--data <dir>', "the daemon's data directory (PARLEY_DATA; default: data)")
    .option(
      '--nats <urls>',
      "the daemon's NATS server, or several with commas (PARLEY_NATS_URL; default: as `up` saved it)",
    )
    .option('--nats-user <name>', 'user on that server (PARLEY_NATS_USER)')
    .option('--nats-password-file <file>', 'a file with its password (PARLEY_NATS_PASSWORD_FILE)')
    .option('--nats-password <password>', 'visible in process lists (PARLEY_NATS_PASSWORD is safer)')
    .option('--nats-token-file <file>', 'a file with a token (PARLEY_NATS_TOKEN_FILE)')
    .option('--nats-token <token>', 'visible in process lists (PARLEY_NATS_TOKEN is safer)')
    .option('--nats-credentials <file>', 'a .creds file (PARLEY_NATS_CREDENTIALS)')
    .option('--nats-nkey <file>', 'a file with an nkey seed (PARLEY_NATS_NKEY)')
    .option('--nats-tls-ca <file>', 'certificate authority (PARLEY_NATS_TLS_CA)')
    .option('--nats-tls-cert <file>', 'client certificate (PARLEY_NATS_TLS_CERT)')
    .option('--nats-tls-key <file>', 'its key (PARLEY_NATS_TLS_KEY)')
    .option('--nats-inbox-prefix <prefix>', 'prefix of its reply subjects (PARLEY_NATS_INBOX_PREFIX)')
    .option('--prefix <prefix>', "the daemon's subjectPrefix (PARLEY_SUBJECT_PREFIX; default: parley)");
}

/** A parser that accepts what fits: `read` returns null for anything else. */
export const parser =
  <T>(read: (value: string) => T | null, expected: string) =>
  (value: string): T => {
    const found = read(value);
    if (found !== null) return found;
    throw new InvalidArgumentError(expected);
  };
export const matching = (pattern: RegExp, expected: string) =>
  parser((value) => (pattern.test(value) ? value : null), expected);
const numberMatching = (pattern: RegExp, expected: string) =>
  parser((value) => (pattern.test(value) ? Number(value) : null), expected);

export const conversationId = matching(
  NAME_PATTERN,
  'A conversation id is 1 to 128 letters, digits, _ or -.',
);
export const publisherName = matching(NAME_PATTERN, 'A publisher is 1 to 128 letters, digits, _ or -.');
export const entryIndex = numberMatching(/^\d{1,15}$/, 'Give the index of an entry: a whole number from 0.');
export const wholeNumber = numberMatching(/^[1-9]\d{0,14}$/, 'Give a whole number from 1.');

/** Milliseconds. */
export const duration = parser(durationOf, `Give ${DURATION_FORM}.`);

/** Without an offset, it is one of this time zone, as what is printed. */
export const pointInTime = parser((value) => {
  const time = new Date(/^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00` : value);
  return /^\d{4}-/.test(value) && !Number.isNaN(time.getTime()) ? time.toISOString() : null;
}, 'Give a time such as 2026-01-31 or 2026-01-31T12:00.');

/** A number is a sequence, never a year. */
export const skipUntil = parser((value): SkipUntil | null => {
  if (value === 'now') return { kind: 'now' };
  if (/^\d{1,15}$/.test(value)) return { kind: 'sequence', sequence: Number(value) };
  const time = /^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? null : { kind: 'time', time };
}, 'Give a sequence of the ingress stream, an ISO time such as 2026-11-24T09:30:00Z, or now.');

/** Names, separated by commas. */
export const listOf = (what: string) =>
  parser((value) => {
    const names = value.split(',').map((name) => name.trim());
    return names.includes('') ? null : names;
  }, `Give ${what}, separated by commas.`);

export function ofConversation(program: Command, name: string, description: string): Command {
  return program.command(name).description(description).argument('<conversation>', 'its id', conversationId);
}

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
