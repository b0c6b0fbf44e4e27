import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { escapeLater, message, pressAlone, sharedStage, textOf, textsCut, until, write } from './support.ts';
import { AGENTS } from './team.ts';

/** More agents than a list of suggestions shows at once. */
const MANY = Array.from({ length: 11 }, (_, n) => [`w${n}`, `---\nname: Élan ${n}\n---\nYou work.`]);

describe.skipIf(chromiumPath === null)('the keyboard and the list of conversations in Chromium', () => {
  const stage = sharedStage(() => {
    const price = { inputPerMillion: 100, outputPerMillion: 100 };
    const models = { default: { provider: 'scripted', script: 'script.yaml', price } };
    return { agents: { ...AGENTS, ...Object.fromEntries(MANY) }, settings: { models } };
  });
  beforeAll(async () => {
    for (const title of ['First', 'Second', 'Third', 'Fourth']) {
      const path = `conversations/${title.toLowerCase()}`;
      await stage.api('POST', `${path}/messages`, { content: `${title} words`, publisher: 'alice' });
      // The list is in the order of the answers.
      await vi.waitFor(async () => {
        expect(JSON.stringify(await stage.api('GET', `${path}/entries`))).toContain('turn-ended');
      }, 30_000);
    }
  });

  const row = (page: Page, title: string) => page.locator('.rows li').filter({ hasText: title });
  const focused = (page: Page) =>
    page.evaluate<string>(
      'document.activeElement.id || document.querySelector(".row:focus .title")?.innerText',
    );
  const organize = async (page: Page, title: string, action: string) => {
    await row(page, title).locator('.row').focus();
    await pressAlone(page, 'm');
    await page.getByRole('button', { name: action, exact: true }).press('Enter');
  };

  const choose = async (page: Page) => {
    await page.keyboard.press('Control+k');
    await page.keyboard.type('Second words');
    await page.getByRole('option', { name: 'Second words' }).first().waitFor();
    await page.keyboard.press('Enter');
    await message(page, 'Second words').first().waitFor();
  };
  itLong('a conversation that is chosen in the palette has the focus in its message field', async () => {
    const page = await stage.open('first', 'Noted: First words');
    await choose(page);
    await until(() => focused(page)).toBe('composer');
  });

  itLong('on a phone, no field of a conversation that is chosen has the focus', async () => {
    const phone = await stage.look('#/c/first', { hasTouch: true, isMobile: true });
    await choose(phone);
    expect(await focused(phone)).not.toBe('composer');
  });

  itLong('Esc and a click beside it close the menu of a row, and nothing behind it moves', async () => {
    const page = await stage.look('#/c/first');
    const menu = page.getByRole('dialog');
    for (const close of [() => page.keyboard.press('Escape'), () => page.mouse.click(900, 20)]) {
      await row(page, 'Second words').locator('.row').focus();
      await pressAlone(page, 'm');
      await menu.waitFor();
      await close();
      await menu.waitFor({ state: 'detached' });
      expect(new URL(page.url()).hash).toBe('#/c/first');
    }
    await page.getByLabel('More').last().click();
    await page.locator('.menu-list:popover-open').waitFor();
    await page.getByLabel('Message', { exact: true }).evaluate('(field) => field.scrollIntoView()');
    await page.evaluate('document.activeElement.blur()'); // the focus is not in the menu
    await page.keyboard.press('Escape');
    await page.locator('.menu-list:popover-open').waitFor({ state: 'detached' });
    expect(new URL(page.url()).hash).toBe('#/c/first');
  });

  it('the menu of a row and that in the head of a conversation have the same actions, and delete after a question', async () => {
    await stage.api('POST', 'conversations/menus/messages', { content: 'Menu words', publisher: 'alice' });
    const page = await stage.open('menus', 'Noted: Menu words');
    const actions = async (menu: string) => {
      const labels = await page.locator(`${menu} button`).allInnerTexts();
      return labels.map((text) => text.replace('…', '')).filter((text) => text !== 'Close');
    };
    await page.getByLabel('More').last().click();
    const inHead = await actions('.menu-list:popover-open');
    await page.getByRole('button', { name: 'Rename…' }).click();
    const selection = () =>
      page.evaluate<string>('document.activeElement.ariaLabel + document.activeElement.selectionEnd');
    await until(selection).toBe(`Title${'Menu words'.length}`);
    const [menu, button] = await Promise.all(
      ['.menu-list:popover-open', '.menu-list:popover-open button'].map((one) =>
        page.locator(one).boundingBox(),
      ),
    );
    expect((button?.x ?? 0) + (button?.width ?? 0)).toBeLessThan((menu?.x ?? 0) + (menu?.width ?? 0));
    expect(await page.getByRole('button', { name: /^Pin|^Delete/ }).count()).toBe(0);
    await page.keyboard.type('Menu words again');
    await page.keyboard.press('Enter');
    await row(page, 'Menu words again').locator('.row').focus();
    const dialog = page.getByRole('dialog', { name: 'Conversation Menu words again' });
    await pressAlone(page, 'm');
    await dialog.waitFor();
    expect(await actions('.row-menu')).toEqual(inHead);
    expect(inHead).toEqual([
      ...['Rename', 'Pin', 'Mark as unread', 'Archive', 'Search this conversation'],
      ...['Download as Markdown', 'Download as JSON (OpenAI messages)', 'Delete this conversation'],
    ]);
    await page.evaluate("location.hash = '#/c/second'");
    await message(page, 'Second words').first().waitFor();
    await organize(page, 'Menu words', 'Delete this conversation…');
    await until(() => page.evaluate('document.activeElement.innerText')).toBe('Cancel');
    await page.waitForTimeout(550); // it takes the place of a pressed button
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await row(page, 'Menu words').waitFor({ state: 'detached' });
    expect(new URL(page.url()).hash).toBe('#/c/second');
  });

  itLong('unread conversations are marked as read one by one, or all that the filter shows', async () => {
    const page = await stage.look();
    const unread = () => page.locator('.row.unread .title').allInnerTexts();
    await row(page, 'Fourth words').waitFor();
    await stage.api('POST', 'conversations/second/messages', { content: 'More', publisher: 'alice' });
    await stage.api('POST', 'conversations/fourth/messages', {
      content: 'hand it over',
      publisher: 'alice',
    });
    await stage.api('POST', 'conversations/third/messages', { content: 'More', publisher: 'alice' });
    await until(async () => (await unread()).toSorted()).toEqual([
      'Fourth words',
      'Second words',
      'Third words',
    ]);
    for (const [title, answer] of [
      ['Second words', 'Noted: More'],
      ['Third words', 'Noted: More'],
      ['Fourth words', 'Built.'],
    ])
      await row(page, title ?? '')
        .filter({ hasText: answer ?? '' })
        .waitFor(); // it is no news afterwards
    await organize(page, 'Third words', 'Mark as read');
    await until(async () => (await unread()).length).toBe(2);
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByLabel('Agent', { exact: true }).selectOption('dev');
    await page.getByRole('button', { name: 'Mark all as read' }).click();
    await page.getByRole('button', { name: 'Show all' }).click();
    await until(unread).toEqual(['Second words']);
    await page.getByRole('button', { name: 'Mark all as read' }).press('Enter');
    await until(unread).toEqual([]);
    expect(await page.evaluate('document.activeElement.id')).toBe('filters');
    await page.getByText('1 marked as read').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await until(unread).toEqual(['Second words']);
    await page.getByRole('button', { name: 'Mark all as read' }).click();
    await until(unread).toEqual([]);
    await page.reload();
    await row(page, 'Second words').waitFor();
    expect(await unread()).toEqual([]);
    expect(await page.getByRole('button', { name: 'Mark all as read' }).count()).toBe(0);
  });

  itLong(
    'a conversation that leaves the list by the keyboard passes the focus to the row beside it',
    async () => {
      const page = await stage.look();
      await row(page, 'Fourth words').waitFor();
      await organize(page, 'Third words', 'Archive');
      await row(page, 'Third words').waitFor({ state: 'detached' });
      expect(await focused(page)).toBe('Second words');
      await page.getByText('Archived: Third words').waitFor();
      await page.getByRole('button', { name: 'Undo' }).click();
      await row(page, 'Third words').waitFor();
      await page.getByText('Moved out of the archive: Third words').waitFor();
      expect(await row(page, 'Third words').locator('.unread').count()).toBe(0);
      await organize(page, 'First words', 'Archive');
      await row(page, 'First words').waitFor({ state: 'detached' });
      expect(await focused(page)).toBe('Second words');
    },
  );

  itLong.each(['Archive', 'Rename'])(
    'the only row that a search finds passes the focus to the search when it leaves the list, and the page says what was done: %s',
    async (action) => {
      const page = await stage.open('second', 'Noted: Second words');
      await page.getByLabel('Find a conversation').fill('Fourth words');
      await until(() => page.locator('.row').count()).toBe(1);
      if (action === 'Archive') await organize(page, 'Fourth words', 'Archive');
      else {
        await row(page, 'Fourth words').locator('.row').focus();
        await pressAlone(page, 'm');
        await page.getByLabel('Title').fill('Last words');
        await page.keyboard.press('Enter');
      }
      await page.getByText('No conversation matches.').waitFor();
      expect(await focused(page)).toBe('search');
      await page.getByText(action === 'Archive' ? 'Archived: Fourth words' : 'Renamed: Last words').waitFor();
      await page.getByRole('button', { name: 'Undo' }).click();
      await row(page, 'Fourth words').waitFor();
      await page.getByLabel('Find a conversation').focus();
      await page.keyboard.press('Escape');
      await until(() => page.locator('.row').count()).toBeGreaterThan(1);
      expect(new URL(page.url()).hash).toBe('#/c/second');
    },
  );

  it('Tab reaches the skip link first, and one row with its button; the arrow keys reach the other rows', async () => {
    const page = await stage.open('second', 'Noted: Second words');
    await page.evaluate('document.activeElement.blur()');
    await page.keyboard.press('Tab');
    const skip = page.getByRole('button', { name: 'Skip to the conversation' });
    expect((await skip.boundingBox())?.height).toBeGreaterThan(20);
    await page.keyboard.press('Enter');
    await until(() => page.evaluate('document.activeElement.tagName')).toBe('MAIN');
    expect((await skip.boundingBox())?.height).toBeLessThan(2);
    await page.getByRole('button', { name: 'Filter' }).focus();
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Second words'); // the open one
    await page.keyboard.press('ArrowUp');
    const above = await focused(page);
    expect(above).not.toBe('Second words');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Organize');
    expect(await page.locator('.row[tabindex="0"]').count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: `Conversation ${above}` }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.closest(".sidebar")')).toBe(null);
  });

  it('Tab reaches the open conversation in the list, also when it was opened elsewhere', async () => {
    const page = await stage.look('#/c/second');
    await row(page, 'Fourth words').locator('.row').focus();
    await page.evaluate("location.hash = '#/c/third'");
    await message(page, 'Third words').first().waitFor();
    await until(() => page.locator('.row[tabindex="0"] .title').innerText()).toBe('Third words');
  });

  it('Esc on a row of the list empties the search and stays on the row', async () => {
    const page = await stage.open('second', 'Noted: Second words');
    const search = page.getByLabel('Find a conversation');
    await search.fill('words');
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown']) await search.press(key);
    const reached = await focused(page);
    expect(reached).not.toBe('Second words');
    await escapeLater(page);
    await until(() => search.inputValue()).toBe('');
    expect(await focused(page)).toBe(reached);
    await escapeLater(page);
    expect(await focused(page)).toBe(reached);
  });

  it('what was done in the list can be undone from the next page', async () => {
    for (const [id, content] of [
      ['undone', 'Undone words'],
      ['next', 'Next words'],
    ])
      await stage.api('POST', `conversations/${id}/messages`, { content, publisher: 'alice' });
    const page = await stage.open('second', 'Noted: Second words');
    await organize(page, 'Undone words', 'Archive');
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    await row(page, 'Next words').locator('.row').click();
    await message(page, 'Next words').first().waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await row(page, 'Undone words').waitFor();
  });

  it('a filter without a value finds no action', async () => {
    const page = await stage.open('second', 'Noted: Second words');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('agent:');
    await page.getByText('Type a value after agent:, one of: ').waitFor();
    expect(await page.locator('.palette [role=option]').count()).toBe(0);
  });

  it('Esc closes a panel though the list is filtered', async () => {
    const page = await stage.look('#/c/second/why/2');
    const panel = page.locator('.answer-panel');
    await panel.waitFor();
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByLabel('Show', { exact: true }).selectOption('mine');
    await page.getByRole('button', { name: 'Show all' }).waitFor();
    await message(page, 'Second words').first().click();
    await escapeLater(page);
    await panel.waitFor({ state: 'detached' });
  });

  it('the question before a deletion names the conversation in full', async () => {
    const path = 'conversations/long-title';
    const title = 'Is there a sleeping car from the old harbour to Narvik in week 138?';
    await stage.api('POST', `${path}/messages`, { content: title, publisher: 'alice' });
    const page = await stage.look('#/c/second');
    await row(page, 'Is there').locator('.row').focus();
    await pressAlone(page, 'm');
    const menu = page.getByRole('dialog');
    await menu.getByRole('button', { name: 'Delete this conversation…' }).click();
    await menu.getByText('This cannot be undone.').waitFor();
    expect(await textOf(menu.locator('p').first())).toContain(title.slice(0, 59));
    expect(await textsCut(page)).toEqual([]);
  });

  itLong(
    'the cost of a row is beside its time, also when it appears at the end of the first turn',
    async () => {
      const page = await stage.look();
      await row(page, 'Fourth words').waitFor();
      await stage.api('POST', 'conversations/costly/messages', { content: 'slowly', publisher: 'alice' });
      const costly = row(page, 'slowly');
      await costly.locator('.talking').waitFor();
      const margin = await page.evaluate(
        "getComputedStyle(document.querySelector('li:has(.talking) time')).marginLeft",
      );
      expect(margin).toBe('0px'); // with a margin that depends on the cost, Chromium sometimes keeps the old one
      await costly.locator('.cost').waitFor();
      const [cost, time] = [
        await costly.locator('.cost').boundingBox(),
        await costly.locator('time').boundingBox(),
      ];
      expect((time?.x ?? 0) - (cost?.x ?? 0) - (cost?.width ?? 0)).toBeLessThan(10);
    },
  );

  itLong('the button of a row under the pointer is in the place of its time', async () => {
    const page = await stage.look();
    const time = row(page, 'Second words').locator('time');
    await time.waitFor();
    await row(page, 'Second words').hover();
    await row(page, 'Second words').getByRole('button', { name: 'Organize' }).waitFor();
    expect(await time.isVisible()).toBe(false);
    await page.mouse.move(900, 400);
    await until(() => time.isVisible()).toBe(true);
  });

  itLong('a conversation with a text that is not sent says so in the list, also after a reload', async () => {
    const page = await stage.open('second', 'Noted: Second words');
    const draft = row(page, 'Second words').getByText('draft', { exact: true });
    await page.getByLabel('Message').fill('half a thought');
    expect(await draft.count()).toBe(0); // it is open
    await page.evaluate("location.hash = '#/c/fourth'");
    await draft.waitFor();
    await page.reload();
    await draft.waitFor();
    await row(page, 'Second words').locator('.row').click();
    await until(() => page.getByLabel('Message').inputValue()).toBe('half a thought');
    await page.getByLabel('Message').fill('');
    await page.evaluate("location.hash = '#/c/fourth'");
    await message(page, 'Fourth words').first().waitFor();
    expect(await draft.count()).toBe(0);
  });

  itLong(
    'two people with the same name are told apart by their publishers, and bands have names alone',
    async () => {
      const ann = (publisher: string, content: string) =>
        stage.api('POST', 'conversations/names/messages', { content, publisher, author: { name: 'Ann' } });
      await ann('console', 'I am the first');
      const page = await stage.look('#/c/names');
      const name = (text: string) => message(page, text).first().locator('.by .name').innerText();
      await message(page, 'I am the first').first().waitFor();
      expect(await name('I am the first')).toBe('Ann');
      await ann('operator', 'I am the second');
      await until(() => name('I am the second')).toBe('Ann · operator');
      expect(await name('I am the first')).toBe('Ann · console');
      await stage.api('POST', 'conversations/names/stop', { publisher: 'console', author: { name: 'Ann' } });
      await page.locator('.band-title', { hasText: 'The conversation was stopped' }).waitFor();
      await page.getByText('by Ann', { exact: true }).waitFor();
      const people = await page.locator('.people').innerText();
      expect(people.match(/Ann · (console|operator)/g)).toHaveLength(2);
    },
  );

  it('@ offers all agents with name and slug, and the list scrolls to the chosen one', async () => {
    const page = await stage.look('#/c/second');
    await page.getByLabel('Message').fill('ask @');
    const options = page.locator('.suggestions').getByRole('option');
    await until(() => options.count()).toBe(13);
    expect(await options.filter({ hasText: 'Lena Lead' }).innerText()).toMatch(
      /^LL\s+Lena Lead\s+@lead\s+leads$/,
    );
    await page.keyboard.press('ArrowUp'); // the last one
    const isInSight = `(() => { const [list, option] = ['.suggestions', '.suggestions [aria-selected="true"]'].map((one) => document.querySelector(one).getBoundingClientRect()); return option.bottom <= list.bottom && option.top >= list.top; })()`;
    await until(() => options.last().getAttribute('aria-selected')).toBe('true');
    await until(() => page.evaluate(isInSight)).toBe(true);
    expect((await page.locator('.suggestions').boundingBox())?.height).toBeLessThan(300);
    await page.getByLabel('Message').fill('ask @él');
    await until(() => options.count()).toBe(11);
  });

  itLong(
    'a conversation that is stopped as a whole says so once, and a resumed agent leaves the others marked',
    async () => {
      const page = await stage.open('fourth', 'Noted: Fourth words');
      await page.getByRole('button', { name: 'Stop', exact: true }).click();
      const head = page.locator('.people');
      await head.getByText('All agents are stopped').waitFor();
      expect((await head.innerText()).match(/stopped/g)).toHaveLength(1);
      await write(page, '@lead speak up');
      await head.getByText('All agents are stopped').waitFor({ state: 'detached' });
      expect((await head.innerText()).match(/stopped/g)).toHaveLength(12);
    },
  );

  itLong('the menu of a row is closed when the address changes', async () => {
    const page = await stage.open('second', 'Noted: Second words');
    await page.evaluate("location.hash = '#/c/fourth'");
    await message(page, 'Fourth words').first().waitFor();
    await row(page, 'Fourth words').locator('.row').focus();
    await pressAlone(page, 'm');
    await page.getByRole('dialog').waitFor();
    await page.goBack();
    await message(page, 'Second words').first().waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  itLong('a dialog that opens just after the address has changed stays open', async () => {
    const page = await stage.open('second', 'Noted: Second words');
    // The page hears of its new address later than this key.
    await page.evaluate(`(() => {
      location.hash = '#/c/fourth';
      document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }));
    })()`);
    await message(page, 'Fourth words').first().waitFor();
    expect(await page.getByRole('dialog', { name: 'Search' }).isVisible()).toBe(true);
  });

  itLong('the list of actions is hidden when another page is opened', async () => {
    const page = await stage.open('second', 'Noted: Second words');
    await page.evaluate("location.hash = '#/inbox'");
    await page.getByRole('button', { name: 'Actions and keys' }).click();
    await page.getByRole('dialog', { name: 'Actions and keys' }).waitFor();
    await page.goBack();
    await message(page, 'Second words').first().waitFor();
    expect(await page.getByRole('dialog', { name: 'Actions and keys' }).isVisible()).toBe(false);
  });
});
