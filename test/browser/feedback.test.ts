import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/conversation/index.ts';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { centreOf, escapeLater, message, PHONE, pressAlone, sharedStage, textOf } from './support.ts';

describe.skipIf(chromiumPath === null)('thumbs for an answer in the console', () => {
  const stage = sharedStage();

  const given = async (conversation: string) => {
    const { entries } = await stage.api<{ entries: Entry[] }>('GET', `conversations/${conversation}/entries`);
    return entries.flatMap((entry) => (entry.type === 'feedback' ? [[entry.value, entry.note]] : []));
  };

  it('a person rates an answer and adds a note by keyboard, and another tab shows both', async () => {
    const page = await stage.begin('rated', 'hello', 'Noted: hello');
    const other = await stage.look('#/c/rated');
    const down = page.getByRole('button', { name: 'Bad answer, entry 2' });
    await down.focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => down.getAttribute('aria-pressed')).toBe('true');
    await page.getByRole('button', { name: 'Add a note' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.type('Too ');
    await page.keyboard.press('Shift+Enter'); // sends no half
    await page.keyboard.type('short');
    await page.keyboard.press('Enter');
    expect(await textOf(other.locator('.feedback').filter({ hasText: 'Too short' }))).toMatch(
      /Bad answer.*console/s,
    );
    expect(await given('rated')).toEqual([
      ['down', undefined],
      ['down', 'Too short'],
    ]);
  });

  const SIZES = [
    ['a desk', {}],
    ['a phone', { ...PHONE, viewport: { width: 390, height: 844 } }],
    ['320 pixels', PHONE],
  ] as const;
  it.each(SIZES)(
    'on %s, a thumb at the end of a long thread stays where it was pressed',
    async (size, options) => {
      const name = `filled-${size.replaceAll(' ', '-')}`;
      for (let n = 0; n < 8; n++) await stage.post(name, `hello ${n}`);
      const page = await stage.look(`#/c/${name}`, options);
      const last = message(page, 'Noted: hello 7');
      await page.locator('.place').last().locator('.read-marker').waitFor(); // it moves the answer
      const up = last.getByRole('button', { name: 'Good answer' });
      const isTouched = 'hasTouch' in options;
      if (isTouched) await last.tap({ position: { x: 20, y: 10 } });
      else await last.hover();
      await up.waitFor();
      await page.waitForTimeout(400); // no part of a double tap
      const places = async () => [await up.boundingBox(), await last.locator('.prose').boundingBox()];
      const before = await places();
      const { x, y } = await centreOf(up);
      const press = () => (isTouched ? page.touchscreen.tap(x, y) : page.mouse.click(x, y));
      await press();
      await expect.poll(() => up.getAttribute('aria-pressed')).toBe('true');
      await last.getByRole('button', { name: 'Add a note' }).waitFor();
      expect(await places()).toEqual(before);
      await press();
      await expect.poll(() => up.getAttribute('aria-pressed')).toBe('false');
      expect(await places()).toEqual(before);
    },
  );

  itLong('the other thumb replaces the first one, and a second click takes it back', async () => {
    const page = await stage.begin('changed', 'hello', 'Noted: hello');
    const up = page.getByRole('button', { name: 'Good answer, entry 2' });
    await page.getByRole('button', { name: 'Bad answer, entry 2' }).click();
    await page.getByRole('button', { name: 'Bad answer, entry 2', pressed: true }).waitFor();
    const note = page.getByLabel('Note on entry 2');
    await page.getByRole('button', { name: 'Add a note' }).click();
    await note.fill('Too');
    await page.reload(); // what is not saved yet is kept
    await expect.poll(() => note.inputValue()).toBe('Too');
    await note.fill('Too short');
    await note.press('Enter');
    await note.waitFor({ state: 'detached' });
    await page.keyboard.press('Control+k');
    await page.keyboard.type('rate good');
    await page.getByRole('option', { name: 'Good answer, entry 2' }).click();
    await page.locator('.feedback.up', { hasText: 'Too short' }).waitFor();
    expect(await page.locator('.feedback').count()).toBe(1);
    await up.click();
    await page.locator('.feedback').waitFor({ state: 'detached' });
    expect(await given('changed')).toEqual([
      ['down', undefined],
      ['down', 'Too short'],
      ['up', 'Too short'],
      ['none', undefined],
    ]);
  });

  itLong(
    'a note that is not saved takes the focus when a person opens it, and not when its entry is drawn again',
    async () => {
      const page = await stage.begin('noted', 'hello', 'Noted: hello');
      await page.getByRole('button', { name: 'Good answer, entry 2' }).click();
      await page.getByRole('button', { name: 'Add a note' }).press('Enter');
      await page.keyboard.type('Half');
      const note = page.getByLabel('Note on entry 2');
      expect(await note.inputValue()).toBe('Half');
      await page.keyboard.press('Escape');
      await pressAlone(page, 'i');
      await page.getByRole('heading', { name: 'Inbox' }).waitFor();
      await escapeLater(page);
      await note.waitFor();
      expect(await note.and(page.locator(':focus')).count()).toBe(0);
      await pressAlone(page, 'i');
      await page.getByRole('heading', { name: 'Inbox' }).waitFor();
      await page.goBack();
      await expect.poll(() => note.inputValue()).toBe('Half');
    },
  );

  itLong('a message of a person has no thumbs', async () => {
    const page = await stage.begin('mine', 'hello', 'Noted: hello');
    const mine = message(page, 'hello').first();
    expect(await mine.getByRole('button', { name: 'answer, entry' }).count()).toBe(0);
    expect(await message(page, 'Noted').getByRole('button', { name: 'answer, entry' }).count()).toBe(2);
  });
});
