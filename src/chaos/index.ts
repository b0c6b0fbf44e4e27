/** The fault harness: a daemon, its server, its disk and its model, broken on purpose for a while, and then judged. */
export type { Violation } from './findings.ts';
export type { ChaosReport } from './report.ts';
export { type ChaosOptions, runChaos } from './run.ts';
export {
  createCrashSchedule,
  createSchedule,
  type Fault,
  type Schedule,
  type ScheduleOptions,
} from './schedule.ts';
