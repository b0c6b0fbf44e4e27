import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Command } from 'commander';
import { type Config, type ConfigFlags, SETTINGS } from '../config/index.ts';
import { escapeHidden, PACKAGE } from '../kernel/index.ts';
import type { CliDependencies, Io } from './io.ts';
import { commandLine, type GlobalOptions, withFlags } from './options/options.ts';
import {
  createPalette,
  type Failure,
  failureOf,
  onTerminal,
  type Palette,
  wantsColour,
} from './render/text.ts';

/** The input and output of one command. Results go to stdout, everything else to stderr. */
export interface Context {
  readonly io: Io;
  readonly dependencies: CliDependencies;
  readonly options: GlobalOptions;
  readonly json: boolean;
  /** For stdout. */
  readonly palette: Palette;
  write(text: string): void;
  /** Writes a line of the result for people. */
  line(text: string): void;
  /** Writes a line of the result for programs. */
  value(value: unknown): void;
  /** Writes the result: for programs the value, for people its text. */
  result<T>(value: T, text: (value: T) => string): void;
  /** Writes a line to stderr. */
  note(text: string): void;
  /** A command to suggest, with the flags by which this one found its daemon. */
  command(words: string): string;
  /** The error to print, with complete suggested commands. */
  failure(error: unknown): Failure;
}

export function createContext(io: Io, dependencies: CliDependencies, options: GlobalOptions): Context {
  const json = options.json === true;
  const write = (text: string) => {
    if (text !== '') io.stdout.write(io.stdout.isTTY ? onTerminal(text) : text);
  };
  const line = (text: string) => write(`${text}\n`);
  const value = (one: unknown) => line(escapeHidden(JSON.stringify(one)));
  return {
    io,
    dependencies,
    options,
    json,
    write,
    line,
    value,
    palette: createPalette(wantsColour(io.stdout, io.env)),
    result: (one, text) => (json ? value(one) : line(text(one))),
    note: (text) => io.stderr.write(`${io.stderr.isTTY ? onTerminal(text) : text}\n`),
    command: (words) => commandLine(io, options, words),
    failure: (error) => {
      const { code, message, hint } = failureOf(error);
      const typed = (text: string) => withDocuments(io, withFlags(io, options, text));
      return { code, message: typed(message), ...(hint === undefined ? {} : { hint: typed(hint) }) };
    },
  };
}

/** Gives a command its work, which gets the context, the arguments and the options; a number is the exit code. */
export type Act = <Given extends readonly unknown[]>(
  command: Command,
  work: (context: Context, ...given: Given) => Promise<unknown>,
) => void;

/** Not a part of a longer path, so that a second pass changes nothing. */
const DOCUMENT = /(?<![\w./-])docs\/[a-z-]+\/[a-z-]+\.md\b/g;

/** Messages name documents as in a checkout. Elsewhere, this gives the path of the document in the package. */
export function withDocuments({ workingDirectory }: Pick<Io, 'workingDirectory'>, text: string): string {
  return text.replace(DOCUMENT, (path) => {
    const file = join(PACKAGE, path);
    if (existsSync(join(workingDirectory, path)) || !existsSync(file)) return path;
    const near = relative(workingDirectory, file);
    return near.startsWith('..') ? file : near;
  });
}

/** Loads the configuration as `up` does. `directory`: the value of `--config`. */
export function loadConfig(
  { io, dependencies, options }: Context,
  directory: string | undefined,
  further: ConfigFlags = {},
): Promise<Config> {
  const { env, workingDirectory } = io;
  const given = SETTINGS.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]]));
  const flags: ConfigFlags = { ...Object.fromEntries(given), ...further };
  return dependencies.loadConfig({ configDirectory: directory, env, flags, workingDirectory });
}
