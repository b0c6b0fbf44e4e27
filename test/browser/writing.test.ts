import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { gate } from '../support/gate.ts';
import { itLong } from '../support/long.ts';
import { message, sharedStage, textOf, write } from './support.ts';

/** How a person writes messages. */
describe.skipIf(chromiumPath === null)('the message field of the console', () => {
  const stage = sharedStage({}, /status of 40[09]/);

  const { post } = stage;

  it('a post is shown and the field is empty before the daemon has answered', async () => {
    const page = await stage.begin('quick', 'hello', 'Noted: hello');
    const { open: release, passed: held } = gate();
    await page.route('**/messages', async (route) => {
      await held;
      await route.continue();
    });
    await write(page, 'shown **at once**');
    const sending = page.locator('article.sending', { hasText: 'shown at once' });
    await sending.waitFor();
    expect(await sending.locator('strong').innerText()).toBe('at once');
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('');
    await page.evaluate('globalThis.shown = document.querySelector("article.sending .prose")');
    release();
    await message(page, 'Noted: shown').waitFor();
    expect(await page.locator('article.sending').count()).toBe(0);
    expect(await message(page, 'shown at once').first().getAttribute('aria-label')).toMatch(
      /^console, entry/,
    );
    expect(await page.evaluate('globalThis.shown.isConnected')).toBe(true); // the same element, not a second one
  });

  itLong('Enter in the name sets the name, and the draft stays a draft', async () => {
    const page = await stage.begin('signed', 'hello', 'Noted: hello');
    await page.getByLabel('Message', { exact: true }).fill('not yet');
    await page.getByLabel('Your name').fill('Zoë');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('composer');
    expect(await page.getByLabel('Message', { exact: true }).inputValue()).toBe('not yet');
    await page.keyboard.press('Enter');
    await message(page, 'Noted: not yet').waitFor();
    expect(await message(page, 'not yet').first().getAttribute('aria-label')).toMatch(/^Zoë, entry/);
  });

  it('a refused post returns to the field, before what was written meanwhile', async () => {
    const page = await stage.begin('returned', 'hello', 'Noted: hello');
    const { open: release, passed: held } = gate();
    await page.route('**/messages', async (route) => {
      await held;
      await route.fulfill({ status: 409, json: { code: 'NO', detail: 'not today', hint: '' } });
    });
    await write(page, 'the first');
    await page.keyboard.type('the second');
    release();
    expect(await textOf(page.getByRole('alert'))).toContain('not today');
    await expect
      .poll(() => page.getByLabel('Message', { exact: true }).inputValue())
      .toBe('the first\n\nthe second');
    expect(await page.locator('article.sending').count()).toBe(0);
  });

  itLong(
    'the up arrow in an empty field writes the last own messages, and the down arrow goes back',
    async () => {
      await post('again', 'of Alice', { includeInContext: false });
      const page = await stage.open('again', 'of Alice');
      await write(page, 'one');
      await message(page, 'Noted: one').waitFor();
      await write(page, 'two\nlines');
      await message(page, 'Noted: two').waitFor();
      const field = page.getByLabel('Message', { exact: true });
      await field.press('ArrowUp');
      expect(await field.inputValue()).toBe('two\nlines');
      await field.press('ArrowUp');
      await field.press('ArrowUp');
      expect(await field.inputValue()).toBe('one');
      await field.press('ArrowDown');
      expect(await field.inputValue()).toBe('two\nlines');
      await field.press('ArrowDown');
      expect(await field.inputValue()).toBe('');
      await field.press('ArrowUp');
      await field.press('!'); // an edited message is a text of its own
      await field.press('ArrowUp');
      await field.press('Enter');
      await message(page, /Noted: two\s+lines!/).waitFor();
    },
  );

  it('Shift and Enter start a line, the field grows with its lines up to a limit, and they are one message', async () => {
    const page = await stage.look('#/c/lines');
    const field = page.getByLabel('Message', { exact: true });
    const height = async () => (await field.boundingBox())?.height ?? 0;
    const one = await height();
    await field.pressSequentially('a');
    for (const letter of 'bcd') {
      await field.press('Shift+Enter');
      await field.pressSequentially(letter);
    }
    expect(await height()).toBeGreaterThan(2.5 * one);
    await field.fill(Array.from({ length: 60 }, (_, n) => `line ${n}`).join('\n'));
    expect(await height()).toBeLessThan(250);
    await field.press('Enter');
    await message(page, 'line 59').first().waitFor();
    expect(await page.locator('article.by-person').count()).toBe(1);
    const last = page.locator('article.message').last();
    await last.getByText('Noted:').waitFor();
    await field.fill('1\n2\n3\n4\n5\n6\n7'); // it hides nothing that was in sight
    const bottomOf = async (one: Locator) => {
      const { y = 0, height = 0 } = (await one.boundingBox()) ?? {};
      return y + height;
    };
    await expect
      .poll(async () => (await bottomOf(last)) <= (await bottomOf(page.locator('.thread'))))
      .toBe(true);
  });

  itLong('a pasted text that the daemon would not take is kept, with its size and what to do', async () => {
    const page = await stage.look('#/c/huge');
    const field = page.getByLabel('Message', { exact: true });
    await field.fill('x'.repeat(1_500_000));
    await field.press('Enter');
    expect(await textOf(page.getByRole('alert'))).toMatch(/1\.43 MiB.*1\.00 MiB.*Shorten it/s);
    expect((await field.inputValue()).length).toBe(1_500_000);
    await field.fill(`${'a long line of a pasted text '.repeat(30_000)}\nits end`);
    await field.press('Enter');
    const hidden = page
      .getByRole('button', { name: /Show more \(8\d\d,\d{3} characters are hidden\)/ })
      .first();
    await hidden.waitFor();
    await hidden.click();
    await page
      .getByRole('button', { name: /Show more \(7|8[1-3]/ })
      .first()
      .waitFor();
    const lengths = async () => {
      const log = await stage.api<{ entries?: { content?: string }[] }>('GET', 'conversations/huge/entries');
      return log.entries?.map(({ content }) => content?.length);
    };
    await expect.poll(lengths, { timeout: 10_000 }).toContain(29 * 30_000 + 8);
  });

  itLong('a text that fills the storage of the tab is sent all the same', async () => {
    const page = await stage.look('#/c/full');
    await page.locator('.composer').waitFor();
    await page.evaluate('sessionStorage.setItem("filler", "x".repeat(5_200_000 - 100))');
    await write(page, `${'word '.repeat(1_000)}sent`);
    await message(page, 'word sent').first().waitFor();
  });

  itLong('each way to write to agents at work says what it does', async () => {
    const page = await stage.look('#/c/ways');
    await page.locator('.composer').waitFor();
    const ways = await page.getByLabel('While they work').locator('option').allInnerTexts();
    expect(ways).toEqual([
      'Steer: read during the turn',
      'Queue: answered after the turn',
      'Interrupt: ends the turn',
    ]);
  });
});
