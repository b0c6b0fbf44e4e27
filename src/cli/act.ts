import type { Command } from 'commander';
import type { Context } from './context.ts';

/** Runs a command's work with its context; what the work answers is the exit code. */
export type Act = (command: Command, work: (context: Context) => Promise<number>) => Promise<void>;
