import type { Command } from 'commander';
import { escapeHidden } from '../kernel/index.ts';
import type { CliDependencies } from './dependencies.ts';
import type { Io } from './io.ts';
import { commandLine, withFlags } from './options/command-line.ts';
import type { GlobalOptions } from './options/options.ts';
import { withDocuments } from './output/documents.ts';
import { type Failure, failureOf } from './render/failure.ts';
import { createPalette, type Palette, wantsColour } from './render/palette.ts';
import { onTerminal } from './render/text.ts';

/** The input and output of one command. Results go to stdout, everything else to stderr. */
export interface Context {
  readonly io: Io;
  readonly dependencies: CliDependencies;
  readonly options: GlobalOptions;
  readonly json: boolean;
  /** For stdout. */
  readonly palette: Palette;
  /** For stderr. */
  readonly notePalette: Palette;
  /** Writes streamed text unchanged. */
  write(text: string): void;
  /** Writes a line of the result for people. */
  line(text: string): void;
  /** Writes a line of the result for programs. */
  value(value: unknown): void;
  /** Writes a line to stderr. */
  note(text: string): void;
  /** A command to suggest, with the flags by which this one found its daemon. */
  command(words: string): string;
  /** The error to print, with complete suggested commands. */
  failure(error: unknown): Failure;
}

export function createContext(io: Io, dependencies: CliDependencies, options: GlobalOptions): Context {
  const write = (text: string) => {
    if (text !== '') io.stdout.write(io.stdout.isTTY ? onTerminal(text) : text);
  };
  return {
    io,
    dependencies,
    options,
    json: options.json === true,
    palette: createPalette(wantsColour(io.stdout, io.env)),
    notePalette: createPalette(wantsColour(io.stderr, io.env)),
    write,
    line: (text) => write(`${text}\n`),
    value: (value) => write(`${escapeHidden(JSON.stringify(value))}\n`),
    note: (text) => io.stderr.write(`${io.stderr.isTTY ? onTerminal(text) : text}\n`),
    command: (words) => commandLine(io, options, words),
    failure: (error) => {
      const { code, message, hint } = failureOf(error);
      const typed = (text: string) => withDocuments(io, withFlags(io, options, text));
      return { code, message: typed(message), ...(hint === undefined ? {} : { hint: typed(hint) }) };
    },
  };
}

/** Runs a command's work with its context. The work returns the exit code. */
export type Act = (command: Command, work: (context: Context) => Promise<number>) => Promise<void>;
