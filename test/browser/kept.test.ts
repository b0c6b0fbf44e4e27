import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { message, sharedStage, textOf, write } from './support.ts';

const OPERATOR = 'a-token-that-operates-0123456789ab';
const ALICE = 'a-token-of-alice-0123456789abcdef';
const BOB = 'a-token-of-bob-0123456789abcdef01';
/** The cookie counts only below the place of the sign-in. */
const IDENTITY = `fetch('s/' + localStorage.getItem('parley.session') + '/api/identity').then((answer) => answer.json())`;
const variable = (name: string) => `\${${name}}`;

/** What the browser keeps for the console. */
describe.skipIf(chromiumPath === null)('what the browser keeps', () => {
  const stage = sharedStage(() => {
    const person = (name: string, key: string) => ({
      ...{ name, role: 'post', token: variable(key), publisher: 'office' },
    });
    return {
      settings: {
        http: {
          tokens: { operate: variable('OPERATE_KEY') },
          people: [person('Alice', 'ALICE_KEY'), person('Bob', 'BOB_KEY')],
        },
      },
      env: { OPERATE_KEY: OPERATOR, ALICE_KEY: ALICE, BOB_KEY: BOB },
      token: OPERATOR,
    };
  }, /net::ERR_|status of 401/);
  beforeAll(async () => {
    await stage.api('POST', 'conversations/demo/messages', { content: 'hello' });
  });

  const keep = (page: Page, storage: 'localStorage' | 'sessionStorage', name: string, text: string) =>
    page.evaluate(`${storage}.setItem(${JSON.stringify(name)}, ${JSON.stringify(text)})`);
  const enter = async (page: Page, token: string) => {
    await page.getByLabel('This daemon requires a token').fill(token);
    await page.keyboard.press('Enter');
    await page.getByLabel('Message').waitFor();
  };
  const enterAs = async (page: Page, token: string) => {
    await page.context().clearCookies();
    await page.reload();
    await enter(page, token);
  };
  const openAs = async (token: string, conversation = 'demo') => {
    const page = await stage.look(`#/c/${conversation}`);
    await enter(page, token);
    return page;
  };
  const postsIn = async (conversation: string) => {
    const { entries = [] } = await stage.api<{
      entries?: { content?: string; role?: string; author: { id: string } }[];
    }>('GET', `conversations/${conversation}/entries`);
    return entries.flatMap(({ role, author, content }) =>
      role === 'user' ? `${author.id}: ${content}` : [],
    );
  };

  it('two browsers of a person share what is read and the saved filters, and another person has their own', async () => {
    await stage.api('POST', 'conversations/news/messages', { content: 'start' });
    const first = await openAs(ALICE);
    const second = await openAs(ALICE);
    const bob = await openAs(BOB);
    const unread = (page: Page) => page.locator('.row.unread').filter({ hasText: 'start' });
    await stage.api('POST', 'conversations/news/messages', { content: 'more' });
    for (const page of [first, second, bob]) await unread(page).waitFor();
    const isSent = first.waitForResponse(/api\/reading$/);
    await first.locator('.row').filter({ hasText: 'start' }).click();
    await isSent;
    await first.getByRole('button', { name: 'Filter', exact: true }).click();
    await first.getByLabel('Show').selectOption('mine');
    const unnamed = first.getByLabel('Name of the filter').and(first.locator(':invalid')); // the browser asks for it
    await unnamed.fill('My work');
    const isSaved = first.waitForResponse(/api\/reading$/);
    await first.keyboard.press('Enter');
    await isSaved;
    await second.reload();
    await second.locator('.row').filter({ hasText: 'start' }).waitFor();
    await expect.poll(() => unread(second).count()).toBe(0);
    await second.getByRole('button', { name: 'Filter', exact: true }).click();
    await second.getByRole('button', { name: 'My work', exact: true }).click();
    expect(await second.getByLabel('Show').inputValue()).toBe('mine');
    await unread(bob).waitFor();
    await bob.getByRole('button', { name: 'Filter', exact: true }).click();
    expect(await bob.getByRole('button', { name: 'My work', exact: true }).count()).toBe(0);
    await first.getByRole('button', { name: 'Remove the filter My work' }).click();
    await first.locator('.saved-filter').waitFor({ state: 'detached' });
  });

  it('what was written in a conversation is forgotten when it is deleted', async () => {
    const page = await openAs(ALICE);
    const kept = () =>
      page.evaluate<string>(
        'JSON.stringify([...Object.entries(localStorage), ...Object.entries(sessionStorage)])',
      );
    const row = page.locator('.row').filter({ hasText: 'gone soon' });
    for (const isOpen of [false, true]) {
      await stage.api('POST', 'conversations/soon/messages', { content: 'gone soon' });
      await page.evaluate("location.hash = '#/c/soon'");
      await message(page, 'Noted: gone soon').waitFor();
      await page.getByLabel('Message').fill('half a secret');
      if (!isOpen) await page.evaluate("location.hash = '#/'");
      await page.reload(); // to the storage of all tabs
      await row.waitFor();
      expect(await kept()).toContain('half a secret');
      await stage.api('DELETE', 'conversations/soon');
      await row.waitFor({ state: 'detached' });
      if (isOpen) expect(await page.getByLabel('Message').inputValue()).toBe('half a secret');
      await page.evaluate("location.hash = '#/new'");
      await expect.poll(kept).not.toContain('half a secret');
    }
  });

  it('an address for one person signs that person in, and a name that is of no token or of several is refused', async () => {
    const printed = await stage.project.parley('token', 'office/Alice', '--url');
    const page = await stage.look(new URL(printed.stdout.trim()).hash);
    await page.getByLabel('Message').waitFor();
    const who = await page.evaluate(IDENTITY);
    expect(who).toEqual({ role: 'post', publisher: 'office', name: 'Alice', isSession: true });
    for (const [owner, why] of [
      ['office', 'several tokens are of office'],
      ['nobody', 'no token is of nobody'],
    ] as const) {
      const { code, stderr } = await stage.project.parley('token', owner, '--url');
      expect([code, stderr]).toEqual([1, expect.stringContaining(why)]);
      expect(stderr).toContain('name one of operate, office/Alice, office/Bob');
    }
    expect((await stage.project.parley('token', 'Bob', '--url')).stdout).toContain('#code=');
    const { stderr } = await stage.project.parley('token', 'office/Alice');
    expect(stderr).toContain('only the token that the daemon makes can be printed');
  });

  it('an address for another person says that one is signed in, and signs nobody in', async () => {
    const page = await openAs(ALICE);
    const printed = await stage.project.parley('token', 'office/Bob', '--url');
    await page.evaluate(`location.hash = ${JSON.stringify(new URL(printed.stdout.trim()).hash)}`);
    const notice = page.getByRole('alert');
    await expect.poll(() => textOf(notice)).toContain('You are signed in as office/Alice');
    expect(await textOf(notice)).toContain('Sign out');
    const who = await page.evaluate(IDENTITY);
    expect(who).toMatchObject({ name: 'Alice' });
  });

  itLong(
    'a kept post of an older page, which names no writer, waits for the decision of the person (OUTBOX-5)',
    async () => {
      const page = await openAs(ALICE, 'older');
      const older = {
        conversation: 'older',
        post: { id: 'older-1', content: 'of an older page' },
        state: 'waiting',
      };
      await keep(page, 'sessionStorage', 'parley.outbox', JSON.stringify([older]));
      await page.reload();
      const kept = page.locator('.kept-posts li');
      await expect.poll(() => textOf(kept)).toMatch(/of an older page[\s\S]*Not sent/);
      await kept.getByRole('button', { name: 'Send again' }).click();
      await message(page, 'Noted: of an older page').waitFor();
    },
  );

  it('a kept post is not sent with the token of another person, but by its writer, or on request (OUTBOX-5)', async () => {
    const page = await openAs(ALICE, 'kept');
    await page.route('**/messages', (route) => route.abort());
    await write(page, 'the first of Alice');
    await write(page, 'the second of Alice');
    const kept = page.locator('.kept-posts li');
    await expect.poll(() => kept.count()).toBe(2);
    await enterAs(page, BOB);
    const first = kept.filter({ hasText: 'the first of Alice' });
    await expect
      .poll(() => textOf(first))
      .toContain('Not sent: it was written with another token, as office/Alice');
    await page.unroute('**/messages');
    await write(page, 'of Bob');
    await message(page, 'Noted: of Bob').waitFor();
    expect(await postsIn('kept')).toEqual(['office/Bob: of Bob']);
    await first.getByRole('button', { name: 'Send again' }).click();
    await message(page, 'Noted: the first of Alice').waitFor();
    await enterAs(page, ALICE);
    await kept.getByRole('button', { name: 'Send again' }).click();
    await message(page, 'Noted: the second of Alice').waitFor();
    expect((await postsIn('kept')).slice(1)).toEqual([
      'office/Bob: the first of Alice',
      'office/Alice: the second of Alice',
    ]);
  });

  itLong(
    'an unsent text with its files is of its writer: another person who signs in to the tab does not get it',
    async () => {
      const page = await openAs(ALICE, 'draft');
      await page.getByLabel('Message').fill('of Alice');
      await page.locator('.composer input[type="file"]').setInputFiles('package.json');
      const files = page.locator('.chosen-files li');
      await files.waitFor();
      await page.reload();
      await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('of Alice');
      await enterAs(page, ALICE);
      expect(await page.getByLabel('Message').inputValue()).toBe('of Alice');
      expect(await files.count()).toBe(1);
      await enterAs(page, BOB);
      expect(await page.getByLabel('Message').inputValue()).toBe('');
      expect(await files.count()).toBe(0);
      expect(await page.locator('.row .draft').count()).toBe(0);
    },
  );

  it('an unsent text is in the next tab that opens its conversation after its tab was closed, there alone, until it is sent', async () => {
    const first = await openAs(ALICE, 'closed');
    const context = first.context();
    const another = async () => {
      const page = await context.newPage();
      await page.goto(`${stage.url}/#/c/closed`);
      await page.getByLabel('Message', { exact: true }).waitFor();
      return page;
    };
    const text = (page: Page) => page.getByLabel('Message', { exact: true }).inputValue();
    await write(first, 'begin');
    await message(first, 'Noted: begin').waitFor();
    await first.getByLabel('Message', { exact: true }).fill('of a closed tab');
    const second = await another();
    expect(await text(second)).toBe(''); // its tab is open
    await second.evaluate("location.hash = '#/inbox'");
    await first.close({ runBeforeUnload: true });
    await second.locator('.row .draft').waitFor();
    await second.evaluate("location.hash = '#/c/closed'");
    await expect.poll(() => text(second)).toBe('of a closed tab');
    const third = await another();
    expect(await text(third)).toBe('');
    await second.reload();
    await expect.poll(() => text(second)).toBe('of a closed tab');
    await second.getByLabel('Message', { exact: true }).press('Enter');
    await message(second, 'Noted: of a closed tab').waitFor();
    await second.close({ runBeforeUnload: true });
    const fourth = await another();
    expect(await text(fourth)).toBe('');
    await fourth.getByLabel('Message', { exact: true }).fill('for Alice alone');
    await fourth.close({ runBeforeUnload: true });
    await enterAs(third, BOB);
    expect(await text(third)).toBe('');
    expect(await third.locator('.row .draft').count()).toBe(0);
    expect(await third.evaluate('JSON.stringify(Object.entries(localStorage))')).not.toContain('Alice alone');
    await context.close();
  });

  const broken = [
    ['sessionStorage', 'parley.outbox', ['no JSON', 'null', '{}', '[1,null]', '[{"conversation":"demo"}]']],
    ['sessionStorage', 'parley.files', ['no JSON', 'null', '5', '[1,null,{"state":{"kind":"lost"}}]']],
    ['sessionStorage', 'parley.left.demo', ['no JSON', 'null', '5', '{"unfolded":5,"place":{"index":"a"}}']],
    ['localStorage', 'parley.seen', ['no JSON', 'null', '{"since":"x","lengths":null}']],
    ['localStorage', 'parley.pins', ['no JSON', 'null', '[1,{}]']],
  ] as const;
  itLong.each(broken)(
    'anything in the %s under %s leaves the console usable',
    async (storage, name, texts) => {
      const page = await openAs(ALICE);
      for (const text of texts) {
        await keep(page, storage, name, text);
        await page.reload();
        await message(page, 'Noted: hello').waitFor();
      }
      await page.evaluate(`location.hash = '#/c/${name.replaceAll('.', '-')}'`);
      await write(page, 'sent');
      await message(page, 'Noted: sent').waitFor();
    },
  );

  itLong('the console can be used while the storage of the browser is full', async () => {
    const page = await openAs(ALICE);
    await page.evaluate(`localStorage.removeItem('parley.seen');
      for (const storage of [localStorage, sessionStorage])
      for (let size = 2 ** 20; size >= 1; size /= 2)
        try { for (let n = 0; ; n++) storage.setItem(size + ' ' + n, 'x'.repeat(size)); } catch {}`);
    await page.reload();
    await message(page, 'Noted: hello').waitFor();
    await write(page, 'without room');
    await message(page, 'Noted: without room').waitFor();
  });

  itLong(
    'keys of an input method write a word, and neither leave the field nor choose what is found (KEYS-2)',
    async () => {
      const page = await openAs(ALICE);
      await message(page, 'hello').first().waitFor();
      const compose = (key: string) =>
        page.evaluate(
          `document.activeElement.dispatchEvent(new KeyboardEvent('keydown',
          { key: '${key}', isComposing: true, bubbles: true, cancelable: true }))`,
        );
      await page.getByLabel('Message').fill('に');
      await compose('Escape');
      expect(await page.evaluate('document.activeElement.id')).toBe('composer');
      await page.keyboard.press('Control+k');
      await page.keyboard.type('lena');
      await page.locator('.palette [aria-selected="true"]').waitFor();
      await compose('Enter');
      expect(await page.locator('.palette[open]').count()).toBe(1);
      await page.keyboard.press('Enter');
      await page.locator('.palette[open]').waitFor({ state: 'detached' });
    },
  );
});
