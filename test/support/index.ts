/**
 * The vocabulary of the tests: one name for each thing, and one way to start, use, read and stop it. Files with an import that
 * takes long or that few tests need (a browser, a cluster, MCP, certificates) are imported by their names.
 *
 * - `lifetime.ts`     `shared`, `perTest`, `closing`: when what a test starts begins and ends
 * - `project.ts`      `openProject`, `startProject`: a project folder on disk, and its daemons as processes (`project.up()`)
 * - `fleet.ts`        `startFleet`: several daemons that share their logs
 * - `nats-server.ts`  `startNatsServer`: a nats-server in a process of its own
 * - `fake-provider.ts` `startFakeProvider`: a model's endpoint on loopback, with the replies of the test
 * - `log.ts`          `ask`: a post and its answer; `entriesOf`, `followUntil`: a log of entries, and what is in it
 * - `cli.ts`          `runCli`: one command in its own process
 * - `steps.ts`        `createSteps`: tool calls that are counted and held from outside; `until`: waits for a condition
 * - `batch.ts`        `openBatchProject`: a project whose agent answers with three of these calls
 *
 * A daemon in process, without a server: `createWorld` in `test/unit/daemon/world.ts`. Its HTTP server alone: `openGateway` in
 * `test/unit/gateway/support.ts`.
 */
export * from './batch.ts';
export * from './cli.ts';
export * from './fake-provider.ts';
export * from './fleet.ts';
export * from './lifetime.ts';
export * from './log.ts';
export * from './nats-server.ts';
export * from './project.ts';
export * from './steps.ts';
