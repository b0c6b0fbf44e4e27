import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type ParleyClient } from '../src/client/index.ts';
import { loadConfig } from '../src/config/index.ts';
import { createDaemon } from '../src/daemon/index.ts';
import { sleep } from '../src/kernel/index.ts';
import { startNatsServer } from '../test/support/nats-server.ts';
import { report, rounded } from './support/report.ts';

/**
 * `what-if` on every turn of a recorded agent, with a scripted second model: how long it takes, and the longest time in
 * which the daemon did nothing else. The agent reads two files in each turn, and every fifth post is for another agent.
 *
 *     npx tsx bench/what-if.ts [turns] [runs]
 */

const [turnCount = '500', runCount = '1'] = process.argv.slice(2);
const turns = Number(turnCount);
const runs = Number(runCount);

const AGENTS = { pm: '[fs_read]', dev: '[]' };
const reading = ['a', 'b'].map((name) => ({ name: 'fs_read', arguments: { path: `@project/${name}.txt` } }));
const FIRST = [
  { when: { agent: 'pm', tool: 'fs_read' }, reply: { text: 'Both files say the same, so the plan stands.' } },
  { when: { agent: 'pm' }, reply: { text: 'I read both.', tool_calls: reading } },
  { reply: { text: 'Done, with a test.' } },
];
/** Another answer after the same calls; other calls where the post ends in 7. */
const SECOND = [
  { when: { tool: 'fs_read' }, reply: { text: 'Both files say the same.\nNothing is to do.' } },
  { when: { last: '/7$/' }, reply: { tool_calls: reading.slice(0, 1) } },
  { reply: { text: 'I look at both.', tool_calls: reading } },
];

async function writeTeam(root: string): Promise<void> {
  await mkdir(join(root, 'config', 'agents'), { recursive: true });
  await mkdir(join(root, 'project'));
  for (const name of ['a', 'b'])
    await writeFile(join(root, 'project', `${name}.txt`), `text of ${name}\n`.repeat(40));
  for (const [slug, tools] of Object.entries(AGENTS))
    await writeFile(
      join(root, 'config', 'agents', `${slug}.md`),
      `---\nname: ${slug}\ndescription: works\ntools: ${tools}\n---\nYou are ${slug}. ${'Work with care. '.repeat(40)}\n`,
    );
  const settings = {
    defaultAgent: 'pm',
    models: {
      default: { provider: 'scripted', script: 'first.yaml', contextTokens: 100_000 },
      m2: { provider: 'scripted', script: 'second.yaml', contextTokens: 100_000 },
    },
    tools: { project: join(root, 'project') },
  };
  await writeFile(join(root, 'config', 'parley.yaml'), JSON.stringify(settings));
  await writeFile(join(root, 'config', 'first.yaml'), JSON.stringify({ rules: FIRST }));
  await writeFile(join(root, 'config', 'second.yaml'), JSON.stringify({ rules: SECOND }));
}

async function entriesIn(client: ParleyClient): Promise<number> {
  return (await client.request('conversation', { conversation: 'team' })).length;
}

/** Posts one by one, each when the turn before has ended. */
async function record(client: ParleyClient): Promise<void> {
  let ended = 0;
  for (let n = 1; n <= turns; n++) {
    for (const content of n % 5 === 0
      ? [`@dev build it, step ${n}`, `look at it, step ${n}`]
      : [`look at it, step ${n}`]) {
      await client.post({ conversation: 'team', publisher: 'alice', content });
      ended++;
      while ((await endedTurns(client)) < ended) await sleep(2);
    }
  }
}

let seen = 0;
let endedSoFar = 0;
async function endedTurns(client: ParleyClient): Promise<number> {
  const { entries } = await client.request('entries', { conversation: 'team', from: seen });
  seen += entries.length;
  endedSoFar += entries.filter(({ type }) => type === 'turn-ended').length;
  return endedSoFar;
}

/** The longest time between two turns of the event loop, while it is watched. */
function watchLoop(): () => number {
  let longest = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  }, 1);
  return () => {
    clearInterval(timer);
    return longest;
  };
}

const root = await mkdtemp(join(tmpdir(), 'parley-bench-'));
const nats = await startNatsServer();
const quiet = { info: () => undefined, warn: () => undefined, error: console.error };
await writeTeam(root);
const config = await loadConfig({
  configDirectory: join(root, 'config'),
  env: {},
  flags: { nats: nats.url, data: join(root, 'data'), http: 'off' },
});
const daemon = createDaemon({ config, log: quiet, mayInstall: false });
await daemon.start();
const client = await connect({ url: nats.url });
try {
  const recording = performance.now();
  await record(client);
  const recordMs = performance.now() - recording;
  const entries = await entriesIn(client);
  const stopWatch = watchLoop();
  const started = performance.now();
  const request = { conversation: 'team', agent: 'pm', at: 'all', model: 'm2', runs, id: 'bench' } as const;
  await client.request('what-if', request);
  let summary = await client.request('what-if-result', { conversation: 'team', id: 'bench', limit: 0 });
  while (summary.state === 'queued' || summary.state === 'running') {
    await sleep(100);
    summary = await client.request('what-if-result', { conversation: 'team', id: 'bench', limit: 0 });
    process.stderr.write(`\r${summary.done} of ${summary.total} runs`);
  }
  const seconds = (performance.now() - started) / 1_000;
  process.stderr.write('\n');
  const { control, changed, done } = summary;
  report('what-if', {
    turns: summary.turns,
    runs: done,
    calls: control.used.calls + changed.used.calls,
    entries,
    recordSeconds: rounded(recordMs / 1_000, 1),
    seconds: rounded(seconds, 1),
    turnsPerSecond: rounded(summary.turns / seconds, 1),
    longestBlockMs: rounded(stopWatch(), 0),
    controlSame: control.same,
    changedDifferent: changed.different,
    changedDiverged: changed.diverged,
    failed: control.failed + changed.failed,
    entriesAfter: await entriesIn(client),
  });
} finally {
  await client.close();
  await daemon.stop();
  await nats.stop();
  await rm(root, { recursive: true, force: true });
}
