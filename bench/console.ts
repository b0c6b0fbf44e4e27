import type { CDPSession, Page } from 'playwright-core';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { launchBrowser } from '../test/support/browser.ts';
import { startNatsServer } from '../test/support/nats-server.ts';
import { openProject, providerSettings } from '../test/support/project.ts';
import { exampleHistory } from './support/history.ts';
import { mainThreadOf } from './support/page.ts';
import { load, startHelper } from './support/processes.ts';
import { median, report, rounded } from './support/report.ts';
import { createRuntime } from './support/runtime.ts';
import { writeHistory } from './support/turns.ts';

/**
 * A long thread in the console, in Chromium: from Enter to the visible post, one frame while scrolling, and, while
 * agents stream, the longest block and the processor time of the main thread, and every five minutes what the page holds after garbage collection.
 *
 *     npx tsx bench/console.ts [entries] [rounds] [seconds of streaming] [tokens per second of an agent] [agents]
 */

const [entryCount = '5000', roundCount = '9', seconds = '60', tokensPerSecond = '20', agentCount = '10'] =
  process.argv.slice(2);
const AGENTS = Number(agentCount);
const SAMPLE_MS = 300_000;
const STREAM_MS = 10_000;
const PATIENCE_MS = 120_000;
const slugs = Array.from({ length: AGENTS }, (_, at) => `agent-${at}`);
const tokens = (Number(tokensPerSecond) * STREAM_MS) / 1_000;

const nats = await startNatsServer();
const endpoint = await startHelper('endpoint.ts', String(1_000 / Number(tokensPerSecond)), String(tokens));
const agents = Object.fromEntries(
  [...slugs, 'pm', 'dev'].map((slug) => [
    slug,
    `---\nname: Agent ${slug}\ndescription: helps\n---\nYou help.`,
  ]),
);
const settings = providerSettings(endpoint.started, {
  models: {
    default: {
      ...{ provider: 'openai', baseURL: endpoint.started, apiKey: 'sk-test', model: 'bench' },
      contextTokens: 10_000_000, // no reduction: the thread is measured
    },
  },
});
const site = await openProject({ nats: nats.url, settings, agents });
const store = await openFileStore(site.data);
const entries = exampleHistory(Number(entryCount), createRuntime(store).team.rules);
await writeHistory(store, 'long', entries);
await store.close();

/** From the key to the frame that shows the post. */
async function post(page: Page, text: string): Promise<number> {
  await page.getByLabel('Message').fill(text);
  await page.evaluate(`window.shown = new Promise((done) => {
    addEventListener('keydown', () => {
      const begun = performance.now();
      const look = () => {
        const messages = [...document.querySelectorAll('article')].slice(-3);
        if (messages.some((one) => one.textContent.includes(${JSON.stringify(text)}))) done(performance.now() - begun);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    }, { once: true, capture: true });
  }); undefined`);
  await page.getByLabel('Message').press('Enter');
  return page.evaluate<number>('window.shown');
}

/** Times of 120 frames while the thread scrolls up, in milliseconds, sorted. */
function scroll(page: Page): Promise<number[]> {
  return page.evaluate<number[]>(`new Promise((done) => {
    const thread = [...document.querySelectorAll('main, main *')]
      .filter((element) => element.scrollHeight > element.clientHeight + 1_000)
      .sort((one, other) => other.scrollHeight - one.scrollHeight)[0];
    const frames = [];
    let last = performance.now();
    const step = (now) => {
      frames.push(now - last);
      last = now;
      thread.scrollBy(0, -400);
      if (frames.length < 120) return requestAnimationFrame(step);
      thread.scrollTo(0, thread.scrollHeight);
      done(frames.sort((one, other) => one - other));
    };
    requestAnimationFrame(step);
  })`);
}

/** On a line of 1.6 Mbit/s with 150 ms: until the end can be read, until all is loaded, and the longest block meanwhile. */
async function openSlowly(url: string) {
  const page = await browser.newPage({ viewport: { width: 1_280, height: 820 } });
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  const line = { downloadThroughput: 200_000, uploadThroughput: 100_000, latency: 150 };
  await session.send('Network.emulateNetworkConditions', { offline: false, ...line });
  await page.addInitScript(`
    window.blocks = [];
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.blocks.push(duration);
    }).observe({ type: 'longtask', buffered: true });
  `);
  const begun = performance.now();
  const since = () => rounded((performance.now() - begun) / 1_000);
  await page.goto(`${url}/#/c/long`);
  await page.locator('article.message').last().waitFor({ timeout: PATIENCE_MS });
  const readable = since();
  await page.locator('.loading').waitFor({ state: 'detached', timeout: PATIENCE_MS });
  const whole = since();
  await page.waitForTimeout(1_000);
  const longest = await page.evaluate<number>('Math.max(0, ...window.blocks)');
  await page.close();
  return { readable, whole, longest };
}

/** After garbage collection. */
async function held(session: CDPSession): Promise<{ heapMb: number; nodes: number; listeners: number }> {
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  const { nodes, jsEventListeners } = await session.send('Memory.getDOMCounters');
  return { heapMb: rounded(usedSize / 1_048_576, 1), nodes, listeners: jsEventListeners };
}

const browser = await launchBrowser();
try {
  const daemon = await site.up('--http', '127.0.0.1:0');
  const url = String(daemon.ready.http);
  const page = await browser.newPage({ viewport: { width: 1_280, height: 820 } });
  await page.goto(`${url}/#/c/long`);
  await page.locator('article.message').last().waitFor({ timeout: PATIENCE_MS });
  await page.waitForTimeout(2_000);
  const at = { entries: Number(entryCount), load: load() };

  const slow = await openSlowly(url);
  report('console-open-slow-s', { ...at, value: slow.readable, whole: slow.whole, wanted: '<= 3' });
  report('console-open-longest-block-ms', { ...at, value: slow.longest, wanted: '< 100' });

  const posts: number[] = [];
  for (let round = 0; round <= Number(roundCount); round++) {
    const took = await post(page, `the post of round ${round}`);
    if (round > 0) posts.push(took); // without the warm-up
    await page.waitForTimeout(STREAM_MS / 5);
  }
  report('console-post-ms', { ...at, value: rounded(median(posts)), wanted: '< 100' });
  const frames = await scroll(page);
  report('console-frame-ms', {
    ...at,
    value: rounded(median(frames)),
    p95: rounded(frames[Math.floor(frames.length * 0.95)] ?? 0),
    wanted: '<= 16.7',
  });

  const session = await page.context().newCDPSession(page);
  await page.evaluate(`
    window.blocks = [];
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.blocks.push(duration);
    }).observe({ type: 'longtask' });
  `);
  const before = await held(session);
  const mainThread = await mainThreadOf(page);
  const busyBefore = await mainThread();
  const begun = Date.now();
  let sampledAt = begun;
  await page.evaluate('window.blocks.length = 0');
  const streams = Math.max(1, Math.round((Number(seconds) * 1_000) / STREAM_MS));
  const streamed = (count: number) => ({ ...at, agents: AGENTS, tokens: count * AGENTS * tokens });
  for (let stream = 0; stream < streams; stream++) {
    await fetch(`${url}/api/conversations/long/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ content: `all of you, ${stream}`, publisher: 'alice', to: slugs }),
    });
    await page.waitForTimeout(STREAM_MS + 2_000);
    if (Date.now() - sampledAt < SAMPLE_MS) continue;
    sampledAt = Date.now();
    const minutes = Math.round((sampledAt - begun) / 60_000);
    report('console-held', { ...streamed(stream + 1), minutes, load: load(), ...(await held(session)) });
  }
  const blocks = await page.evaluate<number[]>('window.blocks');
  const busy = ((await mainThread()) - busyBefore) / ((Date.now() - begun) / 1_000);
  const after = await held(session);
  report('console-block-ms', {
    ...streamed(streams),
    longest: rounded(Math.max(0, ...blocks)),
    over50: blocks.length,
    busyMsOfSecond: rounded(busy, 1),
    wanted: '< 100',
  });
  report('console-heap-mb', {
    ...streamed(streams),
    before: before.heapMb,
    grown: rounded(after.heapMb - before.heapMb, 1),
    ...{ nodesBefore: before.nodes, nodes: after.nodes },
  });
  await page.close();
} finally {
  await browser.close();
  await site.close();
  await endpoint.close();
  await nats.stop();
}
process.exit(0);
