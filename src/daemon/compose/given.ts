import { join } from 'node:path';
import type { FileKeeper, Model, Toolbox } from '../../agents/index.ts';
import type { Bus } from '../../bus/index.ts';
import { type Config, didYouMean } from '../../config/index.ts';
import {
  type Clock,
  monotonicClock,
  nearest,
  ParleyError,
  systemClock,
  systemTimers,
  type Timers,
} from '../../kernel/index.ts';
import { createFunctionModel, type ModelFunction } from '../../models/index.ts';
import type { ConversationStore } from '../../persistence/index.ts';
import type { InProcessTool } from '../../tools/index.ts';
/** What a program gives the daemon that it contains, instead of the configured adapters or besides them. */

export interface Given {
  /** Tools that are functions of this program. */
  readonly tools?: readonly InProcessTool[] | undefined;
  /** Replace the configured models of these names, which keep their window, price and parameters. */
  readonly models?: Readonly<Record<string, Model | ModelFunction>> | undefined;
  /** Replaces the configured store; the daemon closes it. */
  readonly store?: ConversationStore | undefined;
  /** Internal: `parleyd/testing`. */
  readonly simulation?: Simulation | undefined;
}

/** A world in memory, without a server, a data directory and real time. */
export interface Simulation {
  readonly bus: Bus;
  /** The model of all agents in other processes. */
  readonly remote: Model;
  readonly time: Time;
  wrapTools(toolbox: Toolbox): Toolbox;
  /** Called once, before the first post. */
  onReady(activity: Activity, files: FileKeeper): void;
}

export interface Time {
  /** The wall clock: for dates. */
  readonly now: Clock;
  /** The monotonic clock: for durations and deadlines. */
  readonly elapsed: Clock;
  /** Timers of the monotonic clock: limits of turns and approvals, waits between attempts. */
  readonly timers: Timers;
}

export interface Activity {
  /** Decisions, model calls and tool calls in progress. */
  readonly running: number;
  /** Resolves when nothing is in progress: every turn has ended or waits. */
  idle(): Promise<void>;
}

const SYSTEM_TIME: Time = { now: systemClock, elapsed: monotonicClock, timers: systemTimers };

export function timeOf({ simulation }: Given): Time {
  return simulation?.time ?? SYSTEM_TIME;
}

/** The file of the search index; null: it is kept in memory. */
export function searchPathOf({ simulation }: Given, config: Config): string | null {
  return simulation ? null : join(config.daemon.data, 'search', 'index.sqlite');
}

/** Throws `MODEL_UNKNOWN`: a name that no agent can use is a typing error. */
export function givenModels({ models = {} }: Given, config: Config): Map<string, Model> {
  const names = Object.keys(config.models);
  return new Map(
    Object.entries(models).map(([name, model]) => {
      if (!names.includes(name)) throw unknownModel(name, names);
      return [name, typeof model === 'function' ? createFunctionModel(model) : model];
    }),
  );
}

function unknownModel(name: string, names: readonly string[]): ParleyError {
  const { hint = `the configuration has ${names.join(', ')}` } = didYouMean(nearest(name, names));
  return new ParleyError('MODEL_UNKNOWN', `the configuration has no model ${name} to replace`, { hint });
}
