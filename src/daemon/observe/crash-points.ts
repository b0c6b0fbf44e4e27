import type { StorePoint } from '../../persistence/index.ts';

/** Places that work passes, in the order of their use; the store has its own (`STORE_POINTS`). */
export const CRASH_POINTS = [
  'post-received',
  'before-decision',
  'marked',
  'before-append',
  'after-append',
  'before-model-call',
  'before-recovery',
  'after-model-call',
  'before-tool-record',
  'before-tool',
  'after-tool',
  'after-tool-record',
  'post-settled',
  'position-saved',
  'before-answer',
  'conversation-removed',
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number] | StorePoint;

export type ReachCrashPoint = (point: CrashPoint) => void;
