import type { LogFiles } from '../../persistence/jsonl/index.ts';

/** What a test may change in a daemon. Production code only names these switches; `src/chaos/faults.ts` implements them. */

/** Places that work passes, in the order of their use. */
export type CrashPoint =
  | 'post-received'
  | 'before-decision'
  | 'marked'
  | 'before-append'
  | 'after-append'
  | 'before-model-call'
  | 'before-recovery'
  | 'after-model-call'
  | 'before-tool-record'
  | 'before-tool'
  | 'after-tool'
  | 'after-tool-record'
  | 'post-settled'
  | 'position-saved'
  | 'before-answer'
  | 'conversation-removed';

export type ReachCrashPoint = (point: CrashPoint, conversation?: string) => void;

/** Absent in production. */
export interface Faults {
  /** Called at each crash point. */
  readonly reach?: ReachCrashPoint;
  /** Replaces the files of logs, for example to simulate a full disk. */
  readonly logFiles?: (files: LogFiles) => LogFiles;
  /** False: an append to a shared log names no expected sequence. Default: true. */
  readonly isFenced?: boolean;
}
