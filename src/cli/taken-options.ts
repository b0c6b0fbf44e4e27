import type { Command } from 'commander';
import { ParleyError } from '../client/index.ts';
import type { GlobalOptions } from './options.ts';

/**
 * Which of the global options lead a command to a daemon, a server or files. A command refuses those that it does not take,
 * so none is ignored in silence; a command that is not listed takes none. `--json` and `--verbose` hold for every command.
 */

interface Taken {
  readonly options: RegExp;
  /** What to do instead of giving another one. */
  readonly hint: string;
}

const ADDRESS = /^(data$|nats|prefix$)/;
const NONE: Taken = {
  options: /^$/,
  hint: 'leave it out: this command uses no daemon, no server and no data',
};
const ANY: Taken = { options: ADDRESS, hint: '' };
const FILES: Taken = {
  options: /^data$/,
  hint: 'this command works on the files of a data directory: name it with --data; `parley migrate` moves conversations between files and a nats-server',
};
const DAEMON: Taken = {
  options: /^(data$|nats)/,
  hint: 'set `subjectPrefix` in parley.yaml or PARLEY_SUBJECT_PREFIX',
};

const OF_DAEMONS =
  'chat say ls show tail explain phase mode stop resume approvals approve deny resolve rm agents dead doctor migrate';

const TAKEN: ReadonlyMap<string, Taken> = new Map<string, Taken>([
  ...OF_DAEMONS.split(' ').map((name) => [name, ANY] as const),
  ...['fsck', 'export', 'import'].map((name) => [name, FILES] as const),
  ['up', DAEMON],
]);

/** Throws `USAGE` for an option that this command would ignore. */
export function refuseIgnored(command: Command): void {
  const { options, hint } = TAKEN.get(topOf(command).name()) ?? NONE;
  const given = Object.keys(command.optsWithGlobals<GlobalOptions>()).filter((name) => ADDRESS.test(name));
  const ignored = given.find((name) => !options.test(name));
  if (ignored !== undefined) throw noEffect(ignored, hint);
}

export function noEffect(option: string, hint: string): ParleyError {
  const flag = `--${option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return new ParleyError('USAGE', `${flag} has no effect here`, { hint });
}

/** `dead` of `dead show`. */
function topOf(command: Command): Command {
  return command.parent?.parent ? topOf(command.parent) : command;
}
