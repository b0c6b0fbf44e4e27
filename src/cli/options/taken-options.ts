import type { Command } from 'commander';
import { ParleyError } from '../../client/index.ts';
import { resolveDaemonAddress } from '../../config/index.ts';
import type { Io } from '../io.ts';
import { configFlags, type GlobalOptions } from './options.ts';

/**
 * The global options that each command accepts to find a daemon, a server or files. A command refuses all others, so that
 * none is ignored silently; a command that is not listed accepts none. `--json` and `--verbose` apply to every command.
 */

interface Taken {
  readonly options: RegExp;
  /** The next step after a refused option. */
  readonly hint: string;
  /** `--data` is only used to find the server, so it has no effect when the server is given. */
  readonly isEither?: true;
}

const ADDRESS = /^(data$|nats|prefix$|context$)/;
const NONE: Taken = {
  options: /^$/,
  hint: 'leave it out: this command uses no daemon, no server and no data',
};
const ANY: Taken = { options: ADDRESS, hint: '' };
const EITHER: Taken = { ...ANY, isEither: true };
/** They read files or several servers, so a saved server is not enough. */
const NO_CONTEXT: Taken = { options: /^(data$|nats|prefix$)/, hint: 'give the server with --nats' };
const SAVED: Taken = {
  options: /^(nats(?!Password$|Token$)|prefix$)/,
  hint: 'a context keeps --nats, --prefix and paths: give a password with --nats-password-file, a token with --nats-token-file',
};
const FILES: Taken = {
  options: /^data$/,
  hint: 'this command uses the files of a data directory: give it with --data; `parley migrate` moves conversations between files and a nats-server',
};
const DAEMON: Taken = {
  options: /^(data$|nats)/,
  hint: 'set `subjectPrefix` in parley.yaml or PARLEY_SUBJECT_PREFIX',
};

const OF_DAEMONS =
  'chat say run ls show tail record fork hire dismiss reload what-if phase mode stop resume approvals approve deny resolve rm search status agents dead';

const TAKEN: ReadonlyMap<string, Taken> = new Map<string, Taken>([
  ...OF_DAEMONS.split(' ').map((name) => [name, EITHER] as const),
  ...['explain', 'traces', 'doctor', 'migrate'].map((name) => [name, NO_CONTEXT] as const),
  ...['fsck', 'export', 'import'].map((name) => [name, FILES] as const),
  ['token', { options: /^data$/, hint: 'give the data directory of the daemon with --data' }],
  ['up', DAEMON],
  ['backup', NO_CONTEXT],
  ['context add', SAVED],
]);

/** Throws `USAGE` for an option that this command would ignore. */
export function refuseIgnored(command: Command, io: Io): void {
  const { options, hint, isEither } = takenBy(command);
  const given = command.optsWithGlobals<GlobalOptions>();
  const ignored = Object.keys(given).find((name) => ADDRESS.test(name) && !options.test(name));
  if (ignored !== undefined) throw noEffect(ignored, hint);
  if (isEither && given.data !== undefined) refuseBesideServer(given, io);
}

function refuseBesideServer(given: GlobalOptions, { env, workingDirectory }: Io): void {
  const { nats } = resolveDaemonAddress({ env, flags: configFlags(given), workingDirectory });
  if (nats === null) return;
  const variable = env.PARLEY_NATS_URL ? 'PARLEY_NATS_URL' : 'PARLEY_NATS';
  const by =
    given.nats === undefined
      ? `${variable} names the server; or unset ${variable}`
      : '--nats names the server';
  throw noEffect('data', `leave it out: ${by}`);
}

function takenBy(command: Command): Taken {
  const top = topOf(command).name();
  return TAKEN.get(`${top} ${command.name()}`) ?? TAKEN.get(top) ?? NONE;
}

/** Whether a saved server applies to this command. */
export function takesContext(command: Command): boolean {
  return takenBy(command).options.test('context');
}

/** Whether the suggested command `words` accepts this option, when `given` selects the daemon. */
export function isTaken(words: string, option: string, given: GlobalOptions): boolean {
  const { options, isEither } = TAKEN.get(words.split(' ', 1)[0] ?? '') ?? ANY;
  const isNamed = given.nats !== undefined && given.nats !== 'managed';
  return options.test(option) && !(isEither && isNamed && option === 'data');
}

export function noEffect(option: string, hint: string): ParleyError {
  const flag = `--${option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return new ParleyError('USAGE', `${flag} has no effect here`, { hint });
}

/** `dead` of `dead show`. */
function topOf(command: Command): Command {
  return command.parent?.parent ? topOf(command.parent) : command;
}
