import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import setup from '../test/support/package.ts';
import { ROOT } from '../test/support/pages.ts';
import { interleave, median, ratioOf, report, rounded, timed } from './support/report.ts';

/**
 * The start of commands and of the daemon, in a checkout and in the package, against the least: `node -e 0`, and a
 * nats-server that accepts connections. On a loaded machine compare the ratios; `leastMs` is the least of all rounds.
 *
 *     npx tsx bench/command-start.ts [rounds]
 */

const rounds = Number(process.argv[2] ?? '15');
const removePackage = await setup();
const { launcher } = await import('../test/support/cli.ts');
const { openProject } = await import('../test/support/project.ts');
const checkout = join(ROOT, 'bin/parley.js');

async function run(...args: readonly string[]): Promise<number> {
  return timed(async () => {
    await once(spawn(process.execPath, args, { stdio: 'ignore', cwd: tmpdir() }), 'exit');
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address ? address.port : 0;
}

/** From the command to the first bytes that the server sends to a connection. */
async function startServer(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-bench-'));
  const port = await freePort();
  const started = performance.now();
  const args = ['-js', '-sd', folder, '-a', '127.0.0.1', '-p', `${port}`];
  const server = spawn(process.env.NATS_BIN ?? 'nats-server', args, { stdio: 'ignore' });
  while (!(await answers(port))) await pause(2);
  const elapsed = performance.now() - started;
  server.kill('SIGTERM');
  await once(server, 'exit');
  await rm(folder, { recursive: true, force: true });
  return elapsed;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    const end = (found: boolean) => {
      socket.destroy();
      resolve(found);
    };
    socket.once('data', () => end(true)).once('error', () => end(false));
  });
}

const site = await openProject();
async function startDaemon(): Promise<number> {
  let stop = async (): Promise<unknown> => undefined;
  const elapsed = await timed(async () => {
    const daemon = await site.up();
    stop = () => daemon.stop();
  });
  await stop();
  return elapsed;
}

try {
  await run(checkout, 'ls'); // bundles the source
  const commands = await interleave(
    {
      node: () => run('-e', '0'),
      'checkout --version': () => run(checkout, '--version'),
      'checkout --help': () => run(checkout, '--help'),
      'checkout ls': () => run(checkout, 'ls'), // finds no daemon
      'package --version': () => run(launcher, '--version'),
      'package --help': () => run(launcher, '--help'),
      'package ls': () => run(launcher, 'ls'),
    },
    rounds,
    1,
  );
  for (const [what, values] of Object.entries(commands)) {
    const [ms, leastMs] = [rounded(median(values), 1), rounded(Math.min(...values), 1)];
    report('command-start', { text: what, ratio: ratioOf(values, commands.node), ms, leastMs });
  }
  const daemon = await interleave({ server: startServer, ready: startDaemon }, rounds, 1);
  report('daemon-start', {
    ratio: ratioOf(daemon.ready, daemon.server),
    readyMs: rounded(median(daemon.ready), 1),
    leastReadyMs: rounded(Math.min(...daemon.ready), 1),
    serverMs: rounded(median(daemon.server), 1),
  });
} finally {
  await site.close();
  await removePackage?.();
}
