import type { BrowserContext, Page } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CONTEXT, chromiumPath } from '../support/browser.ts';
import { startCountingProxy } from '../support/counting-proxy.ts';
import { shared } from '../support/lifetime.ts';
import { itLong } from '../support/long.ts';
import { message, sharedStage, write } from './support.ts';

/** Several tabs of one browser, which share one event stream. */
describe.skipIf(chromiumPath === null)('the tabs of a browser', () => {
  const stage = sharedStage({}, null);
  const proxy = shared(() => startCountingProxy(stage.url));
  let context: BrowserContext;
  const faults: string[] = [];
  beforeEach(async () => {
    context = await stage.browser.newContext(CONTEXT);
    context.on('weberror', (error) => faults.push(String(error.error())));
    context.on('console', (line) => {
      if (['error', 'warning'].includes(line.type())) faults.push(line.text());
    });
  });
  afterEach(async () => {
    await context.close();
    expect(faults.splice(0)).toEqual([]);
  });

  const look = async (hash: string): Promise<Page> => {
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    await page.goto(`${proxy.url}/${hash}`);
    return page;
  };
  const setVisibility = (page: Page, state: string) =>
    page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
      document.dispatchEvent(new Event('visibilitychange'))`);
  const { post } = stage;
  const streams = () => proxy.open(/events(\?|$)/);

  itLong('eight tabs load, post and see their answers and the whole list over one event stream', async () => {
    const numbers = Array.from({ length: 8 }, (_, n) => n);
    const pages: Page[] = [];
    for (const n of numbers) {
      pages.push(await look(`#/c/tab-${n}`));
      await pages[n]?.locator('.composer').waitFor();
    }
    await Promise.all(pages.map((page, n) => write(page, `from ${n}`)));
    for (const [n, page] of pages.entries()) await message(page, `Noted: from ${n}`).waitFor();
    for (const page of pages) await expect.poll(() => page.locator('.row').count()).toBe(8);
    await expect.poll(() => streams().length).toBe(1);
    for (const page of pages.splice(0, 6)) await page.close();
    await expect
      .poll(() => new URLSearchParams(streams()[0]?.split('?')[1]).get('follow')?.split(',').length)
      .toBe(2);
  });

  it('a tab gets the whole thread that another tab has open, and both get later entries once', async () => {
    await post('shared', 'hello');
    const first = await look('#/c/shared');
    await message(first, 'Noted: hello').waitFor();
    const second = await look('#/c/shared');
    await message(second, 'Noted: hello').waitFor();
    await write(first, 'again');
    for (const page of [first, second]) {
      await message(page, 'Noted: again').waitFor();
      await expect
        .poll(() => page.locator('article.message .prose').allInnerTexts())
        .toEqual(['hello', 'Noted: hello', 'again', 'Noted: again']);
    }
    await expect.poll(() => streams().length).toBe(1);
  });

  it('an address that no conversation can have is no page, and the other tabs go on', async () => {
    await post('known', 'hello');
    const page = await look('#/c/known');
    await message(page, 'Noted: hello').waitFor();
    const other = await look('#/c/known.');
    await other.getByText('The console has no page with this address.').waitFor();
    await post('known', 'again');
    await message(page, 'Noted: again').waitFor();
  });

  it('each tab keeps the filters that the others saved', async () => {
    const pages = [await look('#/'), await look('#/')];
    for (const [n, page] of pages.entries()) {
      await page.getByRole('button', { name: 'Filter' }).click();
      await page.getByLabel('Show').selectOption('Running');
      await page.getByLabel('Name of the filter').fill(`mine ${n}`);
      await page.getByRole('button', { name: 'Save' }).click();
    }
    for (const page of pages)
      await expect.poll(() => page.locator('.saved-filter').allInnerTexts()).toEqual(['mine 0', 'mine 1']);
  });

  itLong(
    'without a SharedWorker, eight tabs load: hidden ones release their streams, and one of them keeps the list',
    async () => {
      await context.addInitScript('delete globalThis.SharedWorker');
      const pages: Page[] = [];
      for (let n = 0; n < 8; n++) {
        const page = await look(`#/c/own-${n}`);
        await page.locator('.composer').waitFor();
        await write(page, `from ${n}`);
        await message(page, `Noted: from ${n}`).waitFor();
        pages.push(page);
        if (n < 7) await setVisibility(page, 'hidden');
      }
      const [first, second] = pages as [Page, Page];
      await expect.poll(() => streams().length).toBe(2);
      expect(streams().filter((one) => /follow/.test(one))).toHaveLength(1);
      await setVisibility(first, 'visible');
      await write(first, 'again');
      await message(first, 'Noted: again').waitFor();
      await expect.poll(() => streams().length).toBe(3); // the next hidden tab keeps the list
      await post('elsewhere', 'news');
      await second.locator('.row', { hasText: 'news' }).waitFor();
    },
  );

  it('without a SharedWorker, tabs that are opened in the background release their streams, so that the next one loads', async () => {
    await context.addInitScript('delete globalThis.SharedWorker');
    const hide = `Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true })`;
    for (let n = 0; n < 6; n++) {
      const page = await context.newPage();
      await page.addInitScript(hide);
      await page.goto(`${proxy.url}/#/c/behind-${n}`);
    }
    const page = await look('#/c/front');
    await write(page, 'hello');
    await message(page, 'Noted: hello').waitFor();
    await expect.poll(() => streams().length).toBe(2);
  });

  itLong(
    'a hidden tab releases its conversation after a while, and catches up when it is shown',
    async () => {
      await post('hidden', 'hello');
      const page = await context.newPage();
      await page.clock.install();
      await page.goto(`${proxy.url}/#/c/hidden`);
      await message(page, 'Noted: hello').waitFor();
      const other = await look('#/c/other');
      await expect.poll(() => streams().join()).toMatch(/hidden/);
      await setVisibility(page, 'hidden');
      await page.clock.fastForward(61_000);
      await expect.poll(() => streams().join()).not.toMatch(/hidden/);
      await post('hidden', 'while away');
      await other.locator('.row').first().waitFor();
      expect(await message(page, 'while away').count()).toBe(0);
      await setVisibility(page, 'visible');
      await message(page, 'Noted: while away').waitFor();
    },
  );
});
