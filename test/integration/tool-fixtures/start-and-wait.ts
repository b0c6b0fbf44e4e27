import { runInGroup } from '../../../src/tools/builtin/shell.ts';
import { ChildTransport } from '../../../src/tools/mcp/child-transport.ts';

/** Starts a command and a program over standard streams, both of which refuse to end when asked, and waits to be killed. */
const directory = process.cwd();
const stubborn = (file: string) =>
  `trap "" TERM HUP; echo $$ >> ${file}; sleep 1000 & while :; do sleep 1; done`;
const environment = { PATH: process.env.PATH ?? '' };
void runInGroup(
  { command: stubborn('command'), directory, environment, timeoutMs: 1_000_000 },
  new AbortController().signal,
);
await new ChildTransport({
  command: '/bin/sh',
  args: ['-c', stubborn('program')],
  env: environment,
  directory,
  endMs: 1_000,
}).start();
process.stdout.write('begun\n');
