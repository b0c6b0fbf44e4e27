import { escapeHidden } from '../kernel/index.ts';
import { commandLine, withFlags } from './command-line.ts';
import type { CliDependencies } from './dependencies.ts';
import type { Io } from './io.ts';
import type { GlobalOptions } from './options.ts';
import { type Failure, failureOf } from './render/failure.ts';
import { createPalette, type Palette, wantsColour } from './render/palette.ts';

/** What one run of a command works with. Results go to stdout, everything else to stderr. */
export interface Context {
  readonly io: Io;
  readonly rooms: CliDependencies;
  readonly options: GlobalOptions;
  readonly json: boolean;
  /** For stdout. */
  readonly palette: Palette;
  /** For stderr. */
  readonly notePalette: Palette;
  /** Text as it is, for what streams. */
  write(text: string): void;
  /** A line of the result, for people. */
  line(text: string): void;
  /** A line of the result, for programs. */
  value(value: unknown): void;
  /** A line beside the result. */
  note(text: string): void;
  /** A command to suggest, with the flags by which this one found its daemon. */
  command(words: string): string;
  /** What to tell of an error; each command that it suggests as it must be typed. */
  failure(error: unknown): Failure;
}

export function createContext(io: Io, rooms: CliDependencies, options: GlobalOptions): Context {
  const write = (text: string) => {
    if (text !== '') io.stdout.write(text);
  };
  return {
    io,
    rooms,
    options,
    json: options.json === true,
    palette: createPalette(wantsColour(io.stdout, io.env)),
    notePalette: createPalette(wantsColour(io.stderr, io.env)),
    write,
    line: (text) => write(`${text}\n`),
    value: (value) => write(`${escapeHidden(JSON.stringify(value))}\n`),
    note: (text) => io.stderr.write(`${text}\n`),
    command: (words) => commandLine(io, options, words),
    failure: (error) => {
      const { code, message, hint } = failureOf(error);
      const typed = (text: string) => withFlags(io, options, text);
      return { code, message: typed(message), ...(hint === undefined ? {} : { hint: typed(hint) }) };
    },
  };
}
