import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { on } from '../support/route-rules.ts';
import { hasLongTests } from '../support/runs.ts';
import { inboxItem, message, pressAlone, sharedStage, textOf, write } from './support.ts';
import { RULES } from './team.ts';

const PATHS = ['@project/one.md', '@project/two.md', '@project/three.md'];
const WRITES = PATHS.map((path) => ({ name: 'fs_write', arguments: { path, content: 'text' } }));
const LONG = { name: 'fs_write', arguments: { path: '@project/long.md', content: 'a line\n'.repeat(150) } };

describe.skipIf(chromiumPath === null)('the console by keyboard', () => {
  const stage = sharedStage(
    {
      script: [
        on('/two files/', { tool_calls: WRITES.slice(0, 2) }),
        on('/three files/', { tool_calls: WRITES }),
        on('/long one/', { tool_calls: [LONG] }),
        on('/break it/', { text: '', error: { code: 'FAKE', message: 'It is broken.' } }),
        ...RULES,
      ],
    },
    /net::ERR_FAILED/,
  );
  const focused = (page: Page) => page.evaluate<string>('document.activeElement.tagName');
  const run = async (page: Page, action: string) => {
    await page.keyboard.press('Control+k');
    await page.keyboard.type(`>${action}`);
    await page.keyboard.press('Enter');
  };

  itLong(
    'says why the key of an answer does nothing: no arrow key selected the call, or several wait',
    async () => {
      const page = await stage.begin('several', 'two files');
      const cards = page.locator('.ask-card');
      await expect.poll(() => cards.count()).toBe(2);
      await page.getByLabel('Message').press('Escape');
      await page.keyboard.press('k');
      await pressAlone(page, 'a');
      await expect
        .poll(() => textOf(page.getByRole('alert')))
        .toContain('Press an arrow key or Tab, then a.');
      for (const key of ['ArrowUp', 'ArrowDown']) await page.keyboard.press(key);
      await pressAlone(page, 'a');
      await expect.poll(() => textOf(page.getByRole('alert'))).toContain('Several calls wait here.');
      expect(await cards.count()).toBe(2);
    },
  );

  it('says it also when the key follows at once the letter that selected the entry', async () => {
    const page = await stage.begin('at-once', 'two files');
    await expect.poll(() => page.locator('.ask-card .primary:enabled').count()).toBe(2); // what they would change is read
    await page.getByLabel('Message').press('Escape');
    for (const key of ['G', 'a']) await page.keyboard.press(key);
    await expect.poll(() => textOf(page.getByRole('alert'))).toContain('Press an arrow key or Tab, then a.');
  });

  it('the key of an answer says that what would change is not shown yet, and acts once it is', async () => {
    await stage.post('unread', 'write it');
    const page = await stage.look();
    let read = () => {};
    const held = new Promise<void>((resolve) => (read = resolve));
    await page.route('**/approvals/*/change', (route) => held.then(() => route.continue()));
    await page.evaluate("location.hash = '#/c/unread'");
    await page.getByText('Reading the file').waitFor();
    await page.getByLabel('Message').press('Escape');
    await page.keyboard.press('ArrowUp');
    for (const key of ['a', 'd']) {
      await pressAlone(page, key);
      await page.getByText(`${key} answers this call once its difference is shown.`).waitFor();
    }
    read();
    await page.locator('.ask-card .primary:enabled').waitFor();
    await pressAlone(page, 'a');
    await message(page, 'That is what came of it').waitFor();
  });

  it('arrow keys go through the calls that wait in an entry, and a key before them says what to do', async () => {
    const page = await stage.begin('through', 'ask both');
    const cards = page.locator('.ask-card');
    await expect.poll(() => cards.count()).toBe(2);
    await page.getByLabel('Message').press('Escape');
    await pressAlone(page, '1');
    await expect.poll(() => textOf(page.getByRole('alert'))).toContain('Press an arrow key or Tab, then 1.');
    for (const key of ['G', 'ArrowDown', 'ArrowDown', 'ArrowUp', 'ArrowUp', 'ArrowDown', 'ArrowDown'])
      await page.keyboard.press(key);
    expect(await page.evaluate('document.activeElement.innerText')).toContain('Which form?');
    expect(await page.evaluate('document.activeElement.innerText')).not.toContain('Which size?');
    await pressAlone(page, '1');
    await page.locator('.ask-card.answered', { hasText: 'Which form?' }).waitFor();
    expect(await page.locator('.ask-card:not(.answered)').count()).toBe(1);
  });

  const ANSWERS = [
    ['a', /^Approved/],
    ['d', /^Denied/],
  ] as const;
  it.each(hasLongTests ? ANSWERS : ANSWERS.slice(0, 1))(
    'after `%s` on one of several calls, ↓ leads to the next one that waits, not to one that was skipped',
    async (key, words) => {
      const page = await stage.begin(`skipped-${key}`, 'three files');
      await page.setViewportSize({ width: 1280, height: 1800 });
      await expect.poll(() => page.locator('.ask-card.seen').count()).toBe(3);
      await page.getByLabel('Message').press('Escape');
      const answer = async (count: number) => {
        await pressAlone(page, key);
        await expect.poll(() => page.locator('.call .answered', { hasText: words }).count()).toBe(count);
        await expect.poll(() => focused(page)).toBe('ARTICLE');
      };
      const reached = () => page.evaluate("document.activeElement.closest('.ask-card')?.innerText ?? ''");
      for (const arrow of ['ArrowUp', 'ArrowDown', 'ArrowDown']) await page.keyboard.press(arrow);
      expect(await reached()).toContain('two.md');
      await answer(1);
      await page.keyboard.press('ArrowDown');
      expect(await reached()).toContain('three.md');
      await answer(2);
      await page.keyboard.press('ArrowDown'); // no other entry follows
      await pressAlone(page, key);
      await expect.poll(() => textOf(page.getByRole('alert'))).toContain('Press an arrow key or Tab, then');
      expect(await page.locator('.ask-card').count()).toBe(1);
    },
  );

  itLong('after Esc in a field, an arrow key goes on from the entry of the field', async () => {
    const page = await stage.begin('from-field', 'write it');
    await page.getByLabel('Reason').waitFor();
    for (const text of ['one more', 'and another']) {
      await stage.post('from-field', text);
      await message(page, text).waitFor();
    }
    await page.getByLabel('Reason').focus();
    for (const key of ['Escape', 'ArrowDown']) await page.keyboard.press(key);
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toContain('one more');
  });

  it('arrow keys go on from the entry that was clicked or explained, else from what is in view', async () => {
    const page = await stage.begin('reading', 'first');
    for (let n = 0; n < 12; n++) {
      await stage.post('reading', `number ${n}.`);
      await message(page, `Noted: number ${n}.`).last().waitFor(); // else one turn answers several
    }
    const here = () => page.evaluate<string>('document.activeElement.innerText');
    const place = (text: string) => page.locator('.thread article', { hasText: `number ${text}.` });
    await place('9').first().click();
    await page.keyboard.press('ArrowDown');
    const next = await here();
    expect(next).toContain('number 9.'); // its answer
    await page.keyboard.press('Enter');
    await page.locator('.answer-panel').waitFor();
    await page.mouse.click(5, 5);
    await page.keyboard.press('Escape');
    await page.locator('.answer-panel').waitFor({ state: 'detached' });
    await expect.poll(here).toBe(next);
    await page.keyboard.press('ArrowDown');
    await expect.poll(here).toContain('number 10.');
    await page.reload();
    await message(page, 'Noted: number 11.').last().waitFor();
    await page.locator('.thread').hover();
    await page.mouse.wheel(0, -100_000);
    await message(page, 'first').first().waitFor();
    await page.keyboard.press('ArrowDown');
    expect(await here()).not.toContain('number 11.');
  });

  itLong(
    'from the list, Enter leads into the conversation and `i` into the inbox: there an arrow key selects what its key answers',
    async () => {
      for (const id of ['from-list', 'from-inbox']) await stage.post(id, `ask me ${id}`);
      const page = await stage.look('#/c/from-list');
      const row = (title: string) => page.locator('.row', { hasText: title });
      await page.getByRole('button', { name: 'red' }).waitFor();
      await row('from-inbox').focus();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'ask me from-inbox' }).waitFor();
      await page.getByRole('button', { name: 'red' }).waitFor();
      await pressAlone(page, '1');
      await expect
        .poll(() => textOf(page.getByRole('alert')))
        .toContain('Press an arrow key or Tab, then 1.');
      await row('from-list').focus();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'ask me from-list' }).waitFor();
      await page.getByRole('button', { name: 'red' }).waitFor();
      await page.keyboard.press('ArrowUp');
      await pressAlone(page, '1');
      await message(page, 'So it is red').waitFor();
      await row('from-list').focus();
      await pressAlone(page, 'i');
      const item = inboxItem(page, 'from-inbox');
      await item.waitFor();
      while ((await item.and(page.locator(':focus')).count()) === 0) await page.keyboard.press('ArrowDown');
      await item.getByRole('button', { name: 'blue' }).waitFor();
      await pressAlone(page, '2');
      await item.waitFor({ state: 'detached' });
    },
  );

  itLong('answers the call that Tab reached, stays at its entry, and answers the other one', async () => {
    const page = await stage.begin('two', 'two files');
    const cards = page.locator('.ask-card');
    await page.setViewportSize({ width: 1280, height: 1800 });
    await expect.poll(() => page.locator('.ask-card.seen').count()).toBe(2);
    // On a slow machine the end of a call was perhaps not in sight yet: then its key leads there first.
    const untilAnswered = (key: string, reach: () => Promise<void>, left: number) =>
      expect
        .poll(async () => {
          await reach();
          await page.keyboard.press('Tab');
          await pressAlone(page, key);
          await cards
            .nth(left)
            .waitFor({ state: 'detached', timeout: 5_000 })
            .catch(() => {});
          return cards.count();
        })
        .toBe(left);
    await untilAnswered('d', () => cards.last().getByLabel('Reason').focus(), 1);
    await expect.poll(() => focused(page)).toBe('ARTICLE');
    await untilAnswered('a', async () => {}, 0);
    await message(page, 'That is what came of it').waitFor();
    const calls = await textOf(page.locator('article', { hasText: 'one.md' }).last());
    expect(calls).toContain('two.md');
  });

  itLong(
    'an action of an entry is found by its words, and after a note the focus stays at its entry',
    async () => {
      const page = await stage.begin('rated', 'hello', 'Noted: hello');
      await run(page, 'good answer');
      await page.getByRole('button', { name: 'Add a note' }).focus();
      await page.keyboard.press('Enter');
      await page.keyboard.type('well said');
      await page.keyboard.press('Enter');
      await page.locator('.feedback').filter({ hasText: 'well said' }).waitFor();
      await expect.poll(() => focused(page)).toBe('ARTICLE');
    },
  );

  itLong.each(['ArrowUp', 'k', 'G', 'link', 'newest'])(
    'the end of a long call that waits comes in no frame into sight by %s, and its key leads there first',
    async (way) => {
      const page = await stage.begin(`unread-${way}`, 'long one');
      const readOn = page.getByRole('button', { name: 'Read on to answer' });
      await readOn.waitFor();
      await page.evaluate(`(function look() {
        const end = document.querySelector('.call-end')?.getBoundingClientRect();
        const { bottom } = document.querySelector('.thread').getBoundingClientRect();
        if (end && end.bottom <= bottom) globalThis.hasSeenEnd = true;
        requestAnimationFrame(look);
      })()`);
      await page.getByLabel('Message').press('Escape');
      if (way === 'link') await page.evaluate("location.hash += '/entry/2'");
      else if (way === 'newest') {
        await page.locator('.thread').hover();
        await page.mouse.wheel(0, -3000);
        await page.getByRole('button', { name: 'Newest' }).click();
      } else await page.keyboard.press(way);
      if (way === 'newest') await page.keyboard.press('ArrowUp');
      await expect.poll(() => focused(page)).toBe('ARTICLE');
      await readOn.waitFor();
      expect(await page.evaluate('globalThis.hasSeenEnd')).toBeUndefined();
      for (const [arrow, isAtCall] of [
        ['ArrowUp', false],
        ['ArrowDown', true],
      ] as const) {
        await page.keyboard.press(arrow);
        await expect
          .poll(() => page.evaluate("document.activeElement.querySelector('.ask-card') !== null"))
          .toBe(isAtCall);
      }
      await pressAlone(page, 'a');
      await page.locator('.ask-card.seen').waitFor();
      expect(await page.locator('.ask-card').count()).toBe(1);
    },
  );

  itLong('actions on a long call lead to its end first, and into sight what they focus', async () => {
    const page = await stage.begin('long-by-name', 'long one');
    const readOn = page.getByRole('button', { name: 'Read on to answer' });
    const seen = page.locator('.ask-card.seen');
    const expectInSight = (name: string) =>
      expect
        .poll(() =>
          page.evaluate(`(() => {
            const one = document.activeElement;
            const { top, bottom } = one.getBoundingClientRect();
            const thread = document.querySelector('.thread').getBoundingClientRect();
            return top >= thread.top && bottom <= thread.bottom ? (one.ariaLabel ?? one.closest('label, button')?.innerText) : '';
          })()`),
        )
        .toContain(name);
    await readOn.waitFor();
    await run(page, 'edit arguments');
    await expectInSight('New path');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.reload();
    await readOn.press('Enter');
    await page.locator('.ask-card.seen:focus').waitFor();
    for (const action of ['read on to answer', 'approve']) {
      await page.reload();
      await readOn.waitFor();
      await run(page, action);
      await seen.waitFor();
    }
    await expectInSight('Approve');
    expect(await page.locator('.ask-card').count()).toBe(1);
    await run(page, 'approve');
    await message(page, 'That is what came of it').waitFor();
  });

  itLong('after the answer to the second of two questions the focus stays at their entry', async () => {
    const page = await stage.begin('both', 'ask both');
    const second = page.locator('.ask-card', { hasText: 'Which form?' });
    await second.getByLabel('Your answer').fill('oval');
    await page.keyboard.press('Enter');
    await page.getByText('oval').last().waitFor();
    await expect.poll(() => focused(page)).toBe('ARTICLE');
  });

  itLong(
    'a failed turn is tried again by its key, and the palette tells the calls of an entry apart',
    async () => {
      const page = await stage.begin('fails', 'break it');
      const again = page.getByRole('button', { name: 'Try again' });
      await again.waitFor();
      await page.getByLabel('Message').press('Escape');
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('ArrowDown');
      await pressAlone(page, 'r');
      await message(page, 'Continue.').first().waitFor();
      await write(page, 'two files');
      await expect.poll(() => page.locator('.ask-card').count()).toBe(2);
      await page.getByLabel('Message').press('Escape');
      await page.keyboard.press('G');
      await page.keyboard.press('Control+k');
      await page.keyboard.type('>appr'); // more words of the inbox fit it
      const found = page.getByRole('dialog').getByRole('option');
      await expect.poll(() => textOf(found.nth(0))).toContain('one.md');
      expect(await textOf(found.nth(1))).toContain('two.md');
      expect(await textOf(found.nth(1))).not.toContain('as JSON');
    },
  );

  it('Enter after “?” runs nothing, and an action is chosen with an arrow key or words', async () => {
    const page = await stage.begin('help', 'hello', 'Noted: hello');
    await page.getByLabel('Message').press('Escape');
    await pressAlone(page, '?');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('option').first().waitFor();
    expect(await dialog.locator('[aria-selected="true"]').count()).toBe(0);
    await page.keyboard.press('Enter');
    await page.keyboard.press('ArrowDown');
    expect(await textOf(dialog.locator('[aria-selected="true"]'))).toContain('Timeline');
    const keys = await dialog
      .getByRole('option')
      .evaluateAll((all) => all.map((one) => one.querySelector('kbd') !== null));
    expect(keys.slice(0, 15)).not.toContain(false);
    expect(await dialog.locator('[aria-disabled="true"]').count()).toBeGreaterThan(0);
  });

  it('a tab with a message that was not sent asks before it is closed', async () => {
    const page = await stage.begin('unsent', 'hello', 'Noted: hello');
    await page.route('**/messages', (route) => route.abort());
    await write(page, 'not yet sent');
    await page.locator('.kept-posts li').waitFor();
    const asked = page.waitForEvent('dialog');
    await page.close({ runBeforeUnload: true });
    const dialog = await asked;
    expect(dialog.type()).toBe('beforeunload');
    await dialog.accept();
  });
});
