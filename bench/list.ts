import type { Page } from 'playwright-core';
import { openFileStore } from '../src/persistence/jsonl/index.ts';
import { launchBrowser } from '../test/support/browser.ts';
import { startNatsServer } from '../test/support/nats-server.ts';
import { openProject, scriptedSettings } from '../test/support/project.ts';
import { mainThreadOf } from './support/page.ts';
import { cpuMs, load } from './support/processes.ts';
import { median, report, rounded, timed } from './support/report.ts';
import { writeAtRest } from './support/turns.ts';

/**
 * The console in Chromium with many conversations against few, in one run: until the list is there, from a post to its
 * row at the top, from a typed letter to the filtered list, one frame while scrolling, the answers of `/api/status`, and
 * the processor time of the daemon and of the page for one second in which a conversation changes.
 *
 *     npx tsx bench/list.ts [many] [few] [rounds]
 */

const [manyCount = '10000', fewCount = '100', roundCount = '9'] = process.argv.slice(2);
const rounds = Number(roundCount);
const ENTRIES = 8;
const PATIENCE_MS = 120_000;

type Figures = Record<
  'firstMs' | 'postMs' | 'filterMs' | 'frameMs' | 'statusMs' | 'daemonCpu' | 'pageCpu',
  number
>;

async function measure(count: number): Promise<Figures> {
  const nats = await startNatsServer();
  const agents = { pm: '---\nname: Pam\ndescription: plans\n---\nYou plan.' };
  const files = { 'script.yaml': { rules: [{ reply: { text: 'Noted.' } }] } };
  const settings = scriptedSettings({ defaultAgent: 'pm' });
  const site = await openProject({ nats: nats.url, settings, agents, files });
  const store = await openFileStore(site.data);
  await writeAtRest(store, count, ENTRIES);
  await store.close();
  const daemon = await site.up('--http', '127.0.0.1:0');
  const url = String(daemon.ready.http);
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 820 } });
    const firstMs = await timed(async () => {
      await page.goto(`${url}/#/`);
      await page.locator('.row').first().waitFor();
    });
    const post = async (content: string) => {
      await fetch(`${url}/api/conversations/live/messages`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ content, publisher: 'alice' }),
      });
    };
    await post('the first');
    await page.getByText('the first').waitFor({ timeout: PATIENCE_MS });
    const [posts, filters, frames, statuses]: [number[], number[], number[], number[]] = [[], [], [], []];
    for (let round = 0; round < rounds; round++) {
      const id = `new-${round}`;
      posts.push(
        await timed(async () => {
          const body = JSON.stringify({ content: `the post ${round}`, publisher: 'alice', conversation: id });
          const headers = { 'content-type': 'application/json' };
          await fetch(`${url}/api/conversations`, { method: 'POST', headers, body });
          await page.getByText(`the post ${round}`, { exact: true }).waitFor({ timeout: PATIENCE_MS });
        }),
      );
      filters.push(await typed(page, String(round)));
      frames.push(await scrolled(page));
      statuses.push(await timed(async () => (await fetch(`${url}/api/status?days=14`)).text()));
    }
    const SECONDS = 10;
    const mainThread = await mainThreadOf(page);
    const before = { daemon: cpuMs(daemon.pid), page: await mainThread() };
    for (let second = 0; second < SECONDS; second++) {
      await post(`in second ${second}`);
      await page.waitForTimeout(1_000);
    }
    return {
      ...{ firstMs, postMs: median(posts), filterMs: median(filters), frameMs: median(frames) },
      statusMs: median(statuses),
      daemonCpu: (cpuMs(daemon.pid) - before.daemon) / SECONDS,
      pageCpu: ((await mainThread()) - before.page) / SECONDS,
    };
  } finally {
    await browser.close();
    await site.close();
    await nats.stop();
  }
}

/** From a key to the frame after it. */
function typed(page: Page, text: string): Promise<number> {
  return page.evaluate<number>(`new Promise((done) => {
    const field = document.getElementById('search');
    const begun = performance.now();
    field.value = ${JSON.stringify(text)};
    field.dispatchEvent(new Event('input', { bubbles: true }));
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const took = performance.now() - begun;
      field.value = '';
      field.dispatchEvent(new Event('input', { bubbles: true }));
      requestAnimationFrame(() => done(took));
    }));
  })`);
}

/** The median time of a frame while the list scrolls. */
function scrolled(page: Page): Promise<number> {
  return page.evaluate<number>(`new Promise((done) => {
    const rows = document.querySelector('.rows');
    const frames = [];
    let last = performance.now();
    const step = (now) => {
      frames.push(now - last);
      last = now;
      rows.scrollBy(0, 300);
      if (frames.length < 60) return requestAnimationFrame(step);
      rows.scrollTo(0, 0);
      done(frames.sort((a, b) => a - b)[30]);
    };
    requestAnimationFrame(step);
  })`);
}

const [many, few] = [await measure(Number(manyCount)), await measure(Number(fewCount))];
const at = { conversations: Number(manyCount), few: Number(fewCount), load: load() };
for (const name of Object.keys(many) as (keyof Figures)[]) {
  const [value, other] = [many[name], few[name]];
  report(`list-${name}`, {
    ...at,
    ratio: rounded(value / other),
    value: rounded(value),
    other: rounded(other),
  });
}
process.exit(0);
