/**
 * The fault harness: injects faults into a daemon, its server, its disk and its model, then checks what is left.
 *
 * run.ts           one run: faults, recovery, checks, clean-up; runner.ts executes the schedule
 * schedule.ts      plans the faults from a seed (rng.ts); posts-plan.ts plans the posts
 * environment.ts   processes, directories and configuration of a run; scenario.ts what agents and tools do
 * actors/          the daemon, nats-server, network proxy, disk, model, tool server and publishers
 * checks/          laws that are checked from outside; findings.ts checks the effects of tools
 * observe.ts       reads logs and views through the request API; report.ts the result
 *
 * faults.ts        what a daemon under test does to itself: crash points, a full disk, appends without fencing
 *
 * Checks read only what a client can see. Nothing here calls code of the daemon: `faults.ts` imports its types.
 */
export { faultsFrom } from './faults.ts';
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
