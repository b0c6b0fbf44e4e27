/**
 * `parleyd/testing`: a team of agents in memory, for the tests of its authors. Works in every test runner.
 *
 *   test-team        `testTeam`: starts the daemon on the store and the bus in memory; posts, approves, moves the
 *                    clock; its configuration is without keys, servers and MCP servers
 *   stand-ins        models and tools that are functions of a test, with the requests that they got
 *   simulation       the clock and the bus of the team, in memory
 *   expectations     assertions that throw `AssertionError`; the turns, calls and questions of a log
 *
 * No file is written but a temporary one for each file of a message, no port is opened, and no test runner is imported.
 */
export type { Config } from '../config/index.ts';
export type { Entry } from '../conversation/index.ts';
export { ParleyError } from '../kernel/index.ts';
export type { FunctionCall, FunctionReply, FunctionRequest, ModelFunction } from '../models/index.ts';
export { createMemoryStore } from '../persistence/memory/index.ts';
export { tool } from '../tools/index.ts';
export {
  type ExpectedHandoff,
  type ExpectedToolCall,
  type ExpectedTurn,
  expectHandoff,
  expectToolCall,
  expectTurn,
  type ToolCallSeen,
  type TurnSeen,
} from './expectations.ts';
export type { FakeTool, ModelSource } from './stand-ins.ts';
export { type Said, type TestTeam, type TestTeamOptions, testTeam } from './test-team.ts';
