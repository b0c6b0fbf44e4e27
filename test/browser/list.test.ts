import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { hasLongTests } from '../support/runs.ts';
import { message, sharedStage, textOf, until, write } from './support.ts';
import { RULES as TEAM_RULES } from './team.ts';

const RULES = [
  { when: { last: '/^fail/' }, reply: { text: '', error: { code: 'FAKE', message: 'It is broken.' } } },
  ...TEAM_RULES,
];

describe.skipIf(chromiumPath === null)('the list of conversations in Chromium', () => {
  const stage = sharedStage({ script: RULES });
  beforeAll(async () => {
    for (const [conversation, content] of [
      ['calm', 'Hello there'],
      ['asks', 'ask me'],
      ['broken', 'fail now'],
      ['moved', 'hand it over'],
    ])
      await post(conversation ?? '', content ?? '');
  });

  const { post } = stage;
  const row = (page: Page, title: string) => page.locator('.rows li').filter({ hasText: title });
  const isWhole = (place: Locator) => place.evaluate((one) => one.scrollWidth <= one.clientWidth);
  const titles = (page: Page) => page.locator('.row .title').allInnerTexts();

  itLong('a row has one line of the newest text again as soon as nothing waits', async () => {
    const page = await stage.look();
    for (const nth of hasLongTests ? [1, 2, 3] : [1]) {
      await post(`wait-${nth}`, 'ask me');
      const waiting = row(page, 'ask me').filter({ hasText: `wait-${nth}` });
      await waiting.getByText('answer needed').waitFor();
      await post(`wait-${nth}`, 'red');
      await waiting.getByText('So it is red.').waitFor();
      await stage.api('DELETE', `conversations/wait-${nth}`);
      await waiting.waitFor({ state: 'detached' });
    }
  });

  it('a failed turn is marked, and filters show what waits, failed, or belongs to an agent or a phase', async () => {
    const page = await stage.look();
    await row(page, 'fail now').getByText('failed', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByLabel('Show').selectOption('Failed');
    await until(() => titles(page)).toEqual(['fail now']);
    await page.getByLabel('Show').selectOption('Waiting');
    await until(() => titles(page)).toEqual(['ask me']);
    await page.getByRole('button', { name: 'Show all' }).click();
    await until(async () => (await titles(page)).length).toBe(4);
    await page.getByLabel('Agent', { exact: true }).selectOption('dev');
    await until(() => titles(page)).toEqual(['hand it over']);
    await page.getByLabel('Agent', { exact: true }).selectOption('');
    await page.getByLabel('Phase').selectOption('execute');
    await until(() => titles(page)).toEqual(['hand it over']);
    await page.getByLabel('Find a conversation').fill('nothing like it');
    const nothing = page.getByText('No conversation matches.');
    await nothing.waitFor();
    expect((await nothing.boundingBox())?.y).toBeLessThan(400); // below the filters, not at the end of the page
    await page.getByRole('button', { name: 'Search messages' }).click();
    const search = page.getByRole('combobox', { name: 'Search conversations' });
    expect(await search.inputValue()).toBe('nothing like it');
    await page.keyboard.press('Escape');
    await page.getByLabel('Find a conversation').press('Escape');
    await nothing.waitFor({ state: 'detached' });
    expect(await page.getByLabel('Find a conversation').inputValue()).toBe('');
  });

  itLong('a row has one line of the newest text in its 44 pixels, unless something waits', async () => {
    const page = await stage.look();
    await until(() => textOf(row(page, 'Hello there').locator('.preview'))).toBe('Noted: Hello there');
    expect((await row(page, 'Hello there').boundingBox())?.height).toBe(44);
    await row(page, 'ask me').getByText('answer needed').waitFor();
    expect(await row(page, 'ask me').locator('.preview').isVisible()).toBe(false);
    await post('calm', 'Once **more**');
    await until(() => textOf(row(page, 'Hello there').locator('.preview'))).toBe('Noted: Once more');
  });

  it('under the pointer the title of a row is as whole as elsewhere, and the chosen filter is whole', async () => {
    await post('titled', `A title ${'that is longer than its line '.repeat(3)}`);
    const page = await stage.look();
    const title = row(page, 'A title').locator('.title');
    const isCovered = () =>
      page.evaluate<boolean>(`(() => {
        const title = [...document.querySelectorAll('.row .title')].find((one) => one.innerText.startsWith('A title'));
        const { right, top, height } = title.getBoundingClientRect();
        return document.elementFromPoint(right - 2, top + height / 2) !== title;
      })()`);
    await title.waitFor();
    expect(await isCovered()).toBe(false);
    await title.hover();
    await row(page, 'A title').getByRole('button', { name: 'Organize' }).hover();
    expect(await isCovered()).toBe(false);
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByLabel('Agent', { exact: true }).selectOption('dev');
    const room = await page.evaluate<number>(`(() => {
      const select = document.querySelector('.filters select[aria-label="Agent"]');
      const { font, paddingLeft, paddingRight } = getComputedStyle(select);
      const context = Object.assign(document.createElement('canvas').getContext('2d'), { font });
      const words = context.measureText(select.selectedOptions[0].text).width;
      return select.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - words;
    })()`);
    expect(room).toBeGreaterThan(10); // its arrow
  });

  itLong('a pinned conversation stays first, also after a reload and beside newer ones', async () => {
    const page = await stage.look();
    await row(page, 'Hello there').locator('.row').focus();
    await page.keyboard.press('m');
    await page.getByRole('button', { name: 'Pin', exact: true }).click();
    await until(async () => (await titles(page))[0]).toBe('Hello there');
    await page.getByText('Pinned: Hello there').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await until(async () => (await titles(page))[0]).not.toBe('Hello there');
    await row(page, 'Hello there').locator('.row').focus();
    await page.keyboard.press('m');
    await page.getByRole('button', { name: 'Pin', exact: true }).click();
    await until(async () => (await titles(page))[0]).toBe('Hello there');
    await post('newer', 'Newer words');
    await page.reload();
    await until(async () => (await titles(page)).slice(0, 2)).toEqual(['Hello there', 'Newer words']);
    await page.keyboard.press('/');
    await page.keyboard.type('Newer');
    await page.keyboard.press('Enter'); // to the first row that is found
    expect(await page.evaluate('document.activeElement.innerText')).toContain('Newer words');
    await page.locator('#search').fill('');
    await row(page, 'Hello there').getByRole('button', { name: 'Organize' }).focus();
    await page.keyboard.press('ArrowDown');
    expect(await page.evaluate('document.activeElement.innerText')).toContain('Newer words'); // the next row
    await row(page, 'Hello there').hover();
    await row(page, 'Hello there').getByRole('button', { name: 'Organize' }).click();
    await page.getByRole('button', { name: 'Unpin' }).click();
    await until(async () => (await titles(page))[0]).toBe('Newer words');
    await page.getByText('Unpinned: Hello there').waitFor();
  });

  it('a conversation is unread until it is opened, in all tabs, and can be marked as unread', async () => {
    const page = await stage.look();
    await row(page, 'Hello there').waitFor();
    expect(await page.locator('.row.unread').count()).toBe(0); // from before the first visit
    await post('calm', 'One more');
    await until(() => page.locator('.row.unread .title').allInnerTexts()).toEqual(['Hello there']);
    const weight = "getComputedStyle(document.querySelector('.row.unread .title')).fontWeight";
    expect(await page.evaluate(weight)).toBe('700');
    const other = await page.context().newPage();
    await other.goto(`${stage.url}/#/c/calm`);
    await message(other, 'Noted: One more').waitFor();
    await until(() => page.locator('.row.unread').count()).toBe(0);
    await page.reload();
    await row(page, 'Hello there').waitFor();
    expect(await page.locator('.row.unread').count()).toBe(0);
    await row(page, 'Hello there').locator('.row').focus();
    await page.keyboard.press('m');
    await page.getByRole('button', { name: 'Mark as unread' }).click();
    await until(() => page.locator('.row.unread').count()).toBe(1);
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByLabel('Show').selectOption('Unread');
    await row(page, 'Hello there').locator('.row').click();
    await message(page, 'Noted: One more').waitFor();
    await until(() => page.locator('.row.unread').count()).toBe(0);
    expect(await titles(page)).toEqual(['Hello there']); // until another one is opened
  });

  it('a person renames and archives a conversation for all browsers, and finds their own', async () => {
    await post('long', 'Some first words');
    const page = await stage.look();
    await row(page, 'Some first words').locator('.row').focus();
    await page.keyboard.press('m');
    await page.getByLabel('Title').fill('A better title');
    await page.keyboard.press('Enter');
    await row(page, 'A better title').waitFor();
    const other = await stage.look('#/c/long');
    await other.getByRole('heading', { name: 'A better title' }).waitFor();
    await other.keyboard.press('Escape');
    await row(other, 'A better title').getByRole('button', { name: 'Organize' }).click();
    await other.getByRole('button', { name: 'Archive', exact: true }).click();
    await row(page, 'A better title').waitFor({ state: 'detached' });
    await other.getByText('This conversation is archived.').waitFor();
    await other.getByRole('button', { name: 'Move it out of the archive' }).click();
    await row(page, 'A better title').waitFor();
    await other.getByRole('alert').getByRole('button', { name: 'Undo' }).click();
    await row(page, 'A better title').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByLabel('Show').selectOption('Archived');
    await until(() => titles(page)).toEqual(['A better title']);
    await row(page, 'A better title').getByRole('button', { name: 'Organize' }).click();
    await page.getByRole('button', { name: 'Move out of the archive' }).click();
    await page.getByText('No conversation matches.').waitFor();
    await stage.api('POST', 'conversations/own/messages', { content: 'My own words', publisher: 'console' });
    await page.getByLabel('Show').selectOption('Mine');
    await until(() => titles(page)).toEqual(['My own words']);
  });

  itLong('a conversation that was begun before the person chose a name stays one of theirs', async () => {
    await post('strange', 'Words of another');
    const page = await stage.look('#/new');
    await write(page, 'Words without a name');
    await message(page, 'Noted: Words without a name').waitFor();
    await page.evaluate("location.hash = '#/new'");
    await page.getByLabel('Your name').fill('Zoe');
    await page.getByLabel('Your name').press('Tab');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByLabel('Show').selectOption('Mine');
    await until(() => titles(page)).toContain('Words without a name');
    expect(await titles(page)).not.toContain('Words of another');
    await page.reload();
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByLabel('Show').selectOption('Mine');
    await until(() => titles(page)).toContain('Words without a name');
  });

  itLong('renaming a conversation leaves its place in the list, and leaves it read', async () => {
    await post('earlier', 'Earlier words');
    await post('later', 'Later words');
    const page = await stage.open('earlier', 'Noted: Earlier words');
    await until(() => page.evaluate('localStorage["parley.seen"]')).toContain('earlier');
    await page.evaluate("location.hash = '#/'");
    const firstTwo = async () => (await titles(page)).slice(0, 2);
    await until(firstTwo).toEqual(['Later words', 'Earlier words']);
    await row(page, 'Earlier words').locator('.row').focus();
    await page.keyboard.press('m');
    await page.getByLabel('Title').fill('Renamed words');
    await page.keyboard.press('Enter');
    await row(page, 'Renamed words').waitFor();
    expect(await firstTwo()).toEqual(['Later words', 'Renamed words']);
    expect(await row(page, 'Renamed words').locator('.unread').count()).toBe(0);
    await post('earlier', 'One more');
    await until(firstTwo).toEqual(['Renamed words', 'Later words']);
    await until(() => row(page, 'Renamed words').locator('.row.unread').count()).toBe(1);
  });

  itLong(
    'a row shows the phase if it is not the first one, and the whole title under the pointer; the list keeps its width',
    async () => {
      const long = `A title that is longer than the list is wide ${'and on '.repeat(8)}`.trim();
      await post('wide', long);
      await post('planned', 'Planned on');
      await stage.api('POST', 'conversations/planned/phase', { phase: 'plan', publisher: 'alice' });
      const page = await stage.look();
      await until(() => row(page, 'Planned on').locator('.phase').allInnerTexts()).toEqual(['plan']);
      const first = row(page, 'A title that is longer').first();
      expect(await first.locator('.phase').count()).toBe(0);
      expect(await first.locator('.row').getAttribute('title')).toContain(
        'A title that is longer than the list is wide and on and on',
      );
      expect((await first.boundingBox())?.height).toBe(44);
      const list = page.locator('.sidebar');
      const { x = 0, y = 0, width = 0, height = 0 } = (await list.boundingBox()) ?? {};
      await page.mouse.move(x + width - 4, y + height - 4);
      await page.mouse.down();
      await page.mouse.move(x + width + 96, y + height - 4, { steps: 4 });
      await page.mouse.up();
      const wide = async () => Math.round((await list.boundingBox())?.width ?? 0);
      await until(wide).toBe(Math.round(width + 100));
      await page.reload();
      await until(wide).toBe(Math.round(width + 100));
    },
  );

  it('the row of the open conversation comes into sight when it is opened and when a message of the person moves it', async () => {
    for (let n = 0; n < 30; n++) await post(`sight-${n}`, `sight ${n}`, { includeInContext: false });
    const page = await stage.look('#/c/sight-1');
    const isInSight = (n: number) =>
      page.evaluate(`(() => {
        const [list, row] = ['.rows', '.row[href="#/c/sight-${n}"]'].map((one) => document.querySelector(one)?.getBoundingClientRect());
        return row !== undefined && row.top >= list.top && row.bottom <= list.bottom;
      })()`);
    await until(() => isInSight(1)).toBe(true);
    await page.evaluate("location.hash = '#/c/sight-28'");
    await until(() => isInSight(28)).toBe(true);
    await page.evaluate("location.hash = '#/c/sight-0'");
    await until(() => isInSight(0)).toBe(true);
    await write(page, 'to the top');
    await until(() => isInSight(0)).toBe(true);
    await until(() => page.evaluate("document.querySelector('.rows').scrollTop")).toBe(0);
    await page.locator('.rows').hover();
    await page.mouse.wheel(0, 9_999);
    await until(() => isInSight(0)).toBe(false);
    await post('sight-0', 'and again', { includeInContext: false });
    await post('sight-9', 'above it', { includeInContext: false });
    await until(() =>
      page.evaluate("document.querySelector('.row[aria-current]').closest('li').ariaPosInSet"),
    ).toBe('2');
    expect(await isInSight(0)).toBe(false);
    await page.evaluate("location.hash = '#/c/sight-5'");
    await until(() => isInSight(5)).toBe(true);
    await page.keyboard.press('Escape');
    await until(() => page.evaluate('document.activeElement.hash')).toBe('#/c/sight-5');
    await post('sight-5', 'to the top', { includeInContext: false });
    await until(() => page.evaluate("document.querySelector('.rows').scrollTop")).toBe(0);
    expect(await isInSight(5)).toBe(true); // the focus on it is no use of the list
  });

  it('titles that begin alike have their ends in sight instead of generated ids, and equal ones have short ids', async () => {
    const [returns, shelves, again] = ['5d0087c4b1f04d6e', 'fca468aa0190ceb3', '93f84402bfe1bd05'].map(
      (id) => `${id}0123456789abcdef`,
    ) as [string, string, string];
    await post(returns, 'Write slowly about what came back of the returns, please.');
    await post(shelves, 'Write slowly about what came back of the shelves, please.');
    const page = await stage.look();
    const ends = () =>
      page.evaluate<string[]>(`[...document.querySelectorAll('.row .with-end')].map((title) => {
        const range = document.createRange();
        range.selectNodeContents(title.lastChild);
        const [end, room] = [range, title.lastChild].map((one) => one.getBoundingClientRect());
        return end.left >= room.left && end.right <= room.right + 1 ? title.lastChild.textContent : 'out of sight';
      })`);
    await until(ends).toEqual(['shelves, please.', 'returns, please.']);
    const widths =
      "[...document.querySelector('.with-end').children].map((part) => part.getBoundingClientRect().width)";
    const [beginning = 0, end = 0] = await page.evaluate<number[]>(widths);
    expect(beginning).toBeGreaterThan(end);
    await page.keyboard.press('Control+k');
    await page.keyboard.type('shelves');
    const gap = `(([beginning, end]) => {
      const range = document.createRange();
      range.selectNodeContents(beginning);
      return end.getBoundingClientRect().left - range.getBoundingClientRect().right;
    })(document.querySelector('.palette .with-end').children)`;
    await page.getByRole('option').locator('.with-end').first().waitFor();
    expect(await page.evaluate(gap)).toBeLessThan(5); // as between other words
    await page.keyboard.press('Escape');
    const ids = page.locator('.rows li').filter({ hasText: 'Write slowly' }).locator('.id');
    expect(await ids.count()).toBe(0);
    await post(again, 'Write slowly about what came back of the returns, please.');
    await until(() => ids.allInnerTexts()).toEqual(['93f844…cdef', '5d0087…cdef']);
  });

  it('unread titles that differ in the last letters of their last word have those in sight', async () => {
    const page = await stage.look();
    await page.locator('.row').first().waitFor();
    const words = ['WWWWWWWWdam', 'interoperabilitaetspruefung'].flatMap((word) => [
      `${word}-1`,
      `${word}-2`,
    ]);
    for (const [n, word] of words.entries()) await post(`word-${n}`, `Account of what came back of ${word}`);
    const inSight = () =>
      page.evaluate<string[]>(`[...document.querySelectorAll('.row.unread .title')].map((title) => {
        const texts = document.createTreeWalker(title, NodeFilter.SHOW_TEXT);
        while (texts.nextNode());
        const range = document.createRange();
        range.setStart(texts.currentNode, texts.currentNode.length - 1);
        range.setEnd(texts.currentNode, texts.currentNode.length);
        const [letter, room] = [range, texts.currentNode.parentElement.closest('.one-line')].map((one) => one.getBoundingClientRect());
        return letter.right <= room.right + 1 ? String(range) : 'out of sight';
      })`);
    await until(async () => (await inSight()).slice(0, 4)).toEqual(['2', '1', '2', '1']);
    const first = page.locator('.row.unread .title').first();
    expect((await first.innerText()).replace('\n', '')).toBe(`Account of what came back of ${words.at(-1)}`);
  });

  it('a deletion says what was deleted on the page to which it leads, and no longer on the next one', async () => {
    const page = await stage.begin('gone', 'Words to delete');
    await row(page, 'Words to delete').waitFor(); // its title names the conversation
    await page.getByRole('button', { name: 'More', exact: true }).click();
    await page.getByRole('button', { name: 'Delete this conversation…' }).press('Enter');
    await page.getByRole('button', { name: 'Delete', exact: true }).press('Enter');
    const notice = page.getByRole('alert');
    await until(() => textOf(notice)).toContain('Deleted: Words to delete');
    await until(() => page.url()).toMatch(/#\/$/);
    await page.waitForTimeout(300);
    expect(await textOf(notice)).toContain('Deleted: Words to delete');
    await page.evaluate("location.hash = '#/inbox'");
    await notice.waitFor({ state: 'detached' });
  });

  it('a row says that all agents are stopped, also where only one of them has work or none has', async () => {
    const page = await stage.look();
    for (const id of ['halted', 'posted']) {
      await post(id, `Words for ${id}`);
      await row(page, `Noted: Words for ${id}`).waitFor();
      await stage.api('POST', `conversations/${id}/stop`, { publisher: 'alice' });
    }
    await post('posted', 'One more');
    for (const id of ['halted', 'posted'])
      await row(page, `Words for ${id}`).getByText('all agents are stopped').waitFor();
    expect(await isWhole(row(page, 'Words for posted').locator('.waits'))).toBe(true);
    await stage.api('POST', 'conversations/posted/resume', { publisher: 'alice', agent: 'dev' });
    await row(page, 'Words for posted').getByText('stopped: Lena Lead').waitFor();
  });

  it('the rows stay where they are while one is pressed, so that it opens', async () => {
    await post('pressed', 'Hello pressed');
    await post('newer', 'Hello newer');
    const page = await stage.look();
    await row(page, 'Noted: Hello newer').waitFor();
    await row(page, 'Noted: Hello pressed').hover();
    await page.mouse.down();
    await post('calm', 'Hello meanwhile');
    await page.waitForTimeout(1_500);
    await page.mouse.up();
    await until(() => page.evaluate('location.hash')).toBe('#/c/pressed');
    await until(async () => (await titles(page))[0]).toBe('Hello there');
  });

  itLong('Esc in a conversation that is far down in the list leads to its row', async () => {
    const page = await stage.look('#/inbox');
    await page.addInitScript('delete globalThis.SharedWorker'); // a route does not see the requests of a worker
    await page.route('**/api/events*', (route) =>
      route.fulfill({ contentType: 'text/event-stream', body: manyRows(200) }),
    );
    await page.goto(`${stage.url}/?far#/c/many-150`);
    await row(page, 'Conversation 150').waitFor();
    await page.locator('.rows').hover();
    await page.mouse.wheel(0, -9_999);
    await row(page, 'Conversation 0').first().waitFor();
    await page.keyboard.press('Escape');
    await until(() => page.evaluate('document.activeElement.hash')).toBe('#/c/many-150');
  });

  itLong(
    '10,000 conversations cost as many elements as the page shows, and the keyboard reaches the next ones',
    async () => {
      const page = await stage.look('#/inbox');
      await page.addInitScript('delete globalThis.SharedWorker'); // a route does not see the requests of a worker
      await page.route('**/api/events*', (route) =>
        route.fulfill({ contentType: 'text/event-stream', body: manyRows(10_000) }),
      );
      await page.reload();
      await row(page, 'Conversation 0').first().waitFor();
      expect(await page.locator('.row').count()).toBeLessThan(40);
      expect(await page.locator('.rows li').first().getAttribute('aria-setsize')).toBe('10000');
      expect(await textOf(page.locator('.row .cost').first())).toBe('$0.01');
      await page.locator('.row').first().focus();
      for (let n = 0; n < 60; n++) await page.keyboard.press('ArrowDown', { delay: 33 }); // a key that is held
      expect(await textOf(page.locator('.row:focus .title'))).toBe('Conversation 60');
      await page.locator('.rows').evaluate((rows) => rows.scrollTo(0, rows.scrollHeight));
      await row(page, 'Conversation 9999').waitFor();
      expect(await page.locator('.row').count()).toBeLessThan(40);
    },
  );
});

/** The first event of a stream. */
function manyRows(count: number): string {
  const at = (n: number) => new Date(Date.UTC(2026, 0, 1) - n * 1_000).toISOString();
  const conversations = Array.from({ length: count }, (_, n) => ({
    ...{
      id: `many-${n}`,
      title: `Conversation ${n}`,
      phase: 'chat',
      mode: 'chat',
      activeAgent: null,
      length: 4,
    },
    ...{ running: [], waiting: [], limited: [], stopped: [], activity: [], agents: [], people: [] },
    ...{ newest: null, archived: false, activeLength: 4, tokens: 1, usd: 0.0123, unpricedCalls: 0 },
    ...{ updatedAt: at(n), activeAt: at(n) },
  }));
  const list = { version: 'many-1', whole: true, conversations, deleted: [] };
  return `event: list\ndata: ${JSON.stringify(list)}\n\n`;
}
