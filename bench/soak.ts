import { readdir, readFile, writeFile } from 'node:fs/promises';
import { openNats } from '../src/bus/nats/index.ts';
import { readConnectionFile } from '../src/client/index.ts';
import { openProject, scriptedSettings } from '../test/support/project.ts';
import { plot, type Sample } from './support/plot.ts';

/**
 * A long life: turns one after another over many conversations, a few at once, in a daemon of its own. Prints its
 * resident memory and its open descriptors over time as CSV, the last lines while it rests; and draws them.
 *
 *     npx tsx bench/soak.ts [turns] [conversations] [plot.svg]
 */

const [turnCount = '2000', conversationCount = '200', path] = process.argv.slice(2);
const turns = Number(turnCount);
const conversations = Number(conversationCount);
const AT_ONCE = 20;
const SAMPLE_MS = 1_000;
/** Longer than an idle conversation stays in memory. */
const REST_MS = 80_000;

const site = await openProject({
  settings: scriptedSettings({ publishers: { default: { postsPerMinute: null } } }),
  agents: { lead: '---\nname: Lead\n---\nYou lead.' },
  files: { 'script.yaml': { rules: [{ reply: { text: 'Noted.' } }] } },
});

try {
  const daemon = await site.up();
  const address = await readConnectionFile(site.data);
  if (!address) throw new Error('the daemon left no address');
  const nats = await openNats(address);
  const ended = new Map<string, () => void>();
  nats.subscribe('parley.log.*', {
    callback: (_, message) => {
      const { entries } = message.json() as { entries: { type: string }[] };
      const conversation = message.subject.split('.').at(-1) ?? '';
      if (entries.some(({ type }) => type === 'turn-ended')) ended.get(conversation)?.();
    },
  });

  const began = performance.now();
  const samples: Sample[] = [];
  let done = 0;
  console.log('seconds,turns,rss_mb,descriptors');
  const sample = async () => {
    const status = await readFile(`/proc/${daemon.pid}/status`, 'utf8');
    const descriptors = (await readdir(`/proc/${daemon.pid}/fd`)).length;
    const rssMb = Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024);
    const seconds = Math.round((performance.now() - began) / 1_000);
    samples.push({ seconds, turns: done, rssMb, descriptors });
    console.log([seconds, done, rssMb, descriptors].join(','));
  };
  await sample();
  const sampling = setInterval(() => void sample(), SAMPLE_MS);

  let next = 0;
  const publisher = async () => {
    for (let turn = next++; turn < turns; turn = next++) {
      const conversation = `soak-${turn % conversations}`;
      const answered = new Promise<void>((resolve) => ended.set(conversation, resolve));
      await nats
        .jetstream()
        .publish(`parley.in.soaker.${conversation}`, JSON.stringify({ content: `turn ${turn}` }));
      await answered;
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, conversations) }, publisher));
  await new Promise((resolve) => setTimeout(resolve, REST_MS));
  clearInterval(sampling);
  await sample();
  if (path)
    await writeFile(path, plot(samples, `${turns} turns over ${conversations} conversations, then rest`));
  await nats.close();
  await daemon.stop();
} finally {
  await site.close();
}
