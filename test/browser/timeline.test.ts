import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { hasLongTests } from '../support/runs.ts';
import { importLong, message, sharedStage, textOf } from './support.ts';

const LONG = 5_000;

/** The elements of the timeline that are added, removed or changed from now on. */
const watchChanges = (page: Page) =>
  page.evaluate(`(() => {
    window.changedElements = 0;
    new MutationObserver((records) => { window.changedElements += records.length; })
      .observe(document.querySelector('.timeline'), { subtree: true, childList: true, attributes: true, characterData: true });
  })()`);

describe.skipIf(chromiumPath === null)('the timeline of the console', () => {
  const stage = sharedStage(hasLongTests ? { before: (project) => importLong(project, LONG) } : {});

  const { post } = stage;
  itLong('the bar of a running turn grows while the turn runs', async () => {
    await post('growing', 'hello');
    await post('growing', 'slowly');
    const page = await stage.look('#/c/growing/timeline');
    const bar = page.locator('.lane-picture .turn').last();
    await bar.waitFor({ state: 'attached' });
    const widthOf = async () => (await bar.boundingBox())?.width ?? 0;
    await expect.poll(widthOf).toBeGreaterThan(20);
    const button = page.getByRole('button', { name: /so far/ });
    const secondsOf = async () =>
      Number(/([\d.]+) s so far/.exec((await button.getAttribute('aria-label')) ?? '')?.[1] ?? 0);
    await expect.poll(secondsOf).toBeGreaterThan(0);
    const begun = await secondsOf();
    await expect.poll(secondsOf, { timeout: 4_000 }).toBeGreaterThan(begun);
    await page.getByRole('button', { name: /Lena Lead: turn: completed, / }).waitFor();
  });

  itLong('a live message in a timeline of five thousand entries changes few elements', async () => {
    const page = await stage.look('#/c/long/timeline');
    await page.locator('.lane-picture .call').first().waitFor({ state: 'attached' });
    expect(await page.locator('.lane-picture *').count()).toBeLessThan(200);
    await watchChanges(page);
    await post('long', 'one more');
    await expect
      .poll(() => page.locator('.spending').innerText())
      .toMatch(new RegExp(`Lena Lead\\s+${(LONG / 2 + 1).toLocaleString('en')}\\b`));
    expect(await page.evaluate('window.changedElements')).toBeLessThan(300);
  });

  it('arrows move between the turns of the timeline, plus zooms, and Enter opens the turn', async () => {
    const page = await stage.begin('keys', 'delegate it', 'Dev says');
    await page.keyboard.press('t');
    const button = page.locator('.turn-button');
    await button.focus();
    const label = () => button.getAttribute('aria-label');
    expect(await label()).toMatch(/^Lena Lead: turn: completed/);
    await page.keyboard.press('ArrowLeft');
    expect(await label()).toMatch(/^Dev <b>Ops<\/b>: turn: completed/);
    expect(await textOf(page.locator('.lane-readout'))).toBe(await label());
    expect(await page.locator('[aria-live]').innerText()).toBe(await label());
    await page.keyboard.press('ArrowUp');
    expect(await label()).toMatch(/^Lena Lead/);
    await page.keyboard.press('Home');
    expect(await label()).toMatch(/^Lena Lead: turn: waiting/);
    const widthOf = async () => (await page.locator('.lane-width').boundingBox())?.width ?? 0;
    const before = await widthOf();
    for (let n = 0; n < 4; n++) await page.keyboard.press('+');
    await expect.poll(widthOf).toBeCloseTo(before * 4, -1);
    const place = () => page.locator('.lane-picture').evaluate(({ scrollLeft }) => scrollLeft);
    await page.locator('.lane-picture').evaluate((picture) => picture.scrollTo({ left: 300 }));
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toMatch(/delegate it/);
    await page.goBack();
    await expect.poll(widthOf).toBeCloseTo(before * 4, -1);
    await expect.poll(place).toBe(300);
  });

  it('the timeline has labels of time, and says what is under the pointer, which a click opens', async () => {
    const page = await stage.begin('pointed', 'hello', 'Noted: hello');
    await page.keyboard.press('t');
    await expect.poll(() => page.locator('.tick').first().textContent()).toMatch(/\d\d:\d\d/);
    const box = await page.locator('.lane-picture .turn').boundingBox();
    if (!box) throw new Error('the turn has no box');
    await page.mouse.move(box.x + box.width / 2, box.y + 2);
    await expect
      .poll(() => page.locator('.lane-readout').innerText())
      .toMatch(/^Lena Lead: turn: completed, [\d.]+ m?s, at /);
    await page.mouse.click(box.x + box.width / 2, box.y + 2);
    await message(page, 'Noted: hello').waitFor();
  });
});
