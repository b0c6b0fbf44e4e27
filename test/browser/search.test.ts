import { beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { message, sharedStage, textOf } from './support.ts';

/** The palette: jumps to conversations, agents and messages. */
describe.skipIf(chromiumPath === null)('the palette in Chromium', () => {
  const stage = sharedStage({}, /status of 400/);
  beforeAll(async () => {
    for (const [conversation, content] of [
      ['zoo', 'Where does the quokka live? <b>now</b>'],
      ['garden', 'Plant a magnolia'],
    ])
      await stage.api('POST', `conversations/${conversation}/messages`, { content, publisher: 'alice' });
  });

  const open = async (hash?: string) => {
    const page = await stage.look(hash);
    await page.locator('.row').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: /Search/ }).waitFor();
    return page;
  };

  it('a person finds a message with the keyboard, and its entry is selected', async () => {
    const page = await open();
    await page.keyboard.type('quok');
    const option = page.getByRole('option', { name: /Alice|alice/ }).filter({ hasText: 'quokka' });
    expect(await textOf(option.first())).toContain('Where does the quokka live? <b>now</b>');
    expect(await option.first().locator('mark').innerText()).toBe('quokka');
    for (let n = 0; n < 10 && (await option.first().getAttribute('aria-selected')) !== 'true'; n++)
      await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await message(page, 'Where does the quokka live?').first().waitFor();
    expect(page.url()).toMatch(/#\/c\/zoo$/);
    await expect
      .poll(() => page.evaluate('document.activeElement.closest("article")?.innerText ?? ""'))
      .toContain('Where does the quokka');
  });

  itLong('a person finds the question of an agent, and reads what is wrong with a filter', async () => {
    await stage.api('POST', 'conversations/asked/messages', { content: 'ask me', publisher: 'alice' });
    const page = await open();
    await page.keyboard.type('which colour');
    await page.getByRole('option').filter({ hasText: 'Which colour?' }).first().waitFor();
    await page.keyboard.type(' after:yesterday');
    const hint = page.locator('.palette .hint');
    await expect.poll(() => hint.innerText()).toMatch(/^Messages cannot be searched: after: expected a time/);
  });

  it('a filter limits the messages to those of an agent', async () => {
    const page = await open();
    await page.keyboard.type('magnolia agent:lead');
    const options = page.getByRole('option');
    await expect
      .poll(() => options.allInnerTexts()) // those of the text before the filter come first
      .toEqual([expect.stringContaining('Lena Lead')]);
  });

  it('Ctrl+F in a conversation, also from its menu, searches that conversation only', async () => {
    await stage.api('POST', 'conversations/garden/messages', {
      content: 'no quokka here',
      publisher: 'alice',
    });
    const page = await stage.look('#/c/garden');
    await message(page, 'no quokka here').first().waitFor();
    await page.getByLabel('Message').focus();
    await page.keyboard.press('Control+f');
    const field = page.getByRole('combobox', { name: /Search/ });
    await expect.poll(() => field.inputValue()).toBe('in:garden ');
    await page.keyboard.type('quokka');
    const found = page.locator('.palette').getByRole('option');
    await expect.poll(() => found.first().innerText()).toContain('no quokka here');
    expect((await found.allInnerTexts()).filter((text) => !/no quokka here/i.test(text))).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByLabel('More').click();
    await page.getByRole('button', { name: 'Search this conversation' }).click();
    await expect.poll(() => field.inputValue()).toBe('in:garden ');
    await page.keyboard.type('quokka agent:"lena LEAD"'); // as the page names it
    expect(await textOf(found.first())).toMatch(/^Lena Lead.*entry \d+/s);
    await page.keyboard.press('Enter');
    await field.waitFor({ state: 'detached' });
    await page.keyboard.press('Control+f');
    await expect.poll(() => field.inputValue()).toBe('in:garden quokka agent:"lena LEAD"');
    await page.keyboard.type('zebra'); // over the words
    await expect.poll(() => field.inputValue()).toBe('in:garden zebra');
  });

  itLong('a person jumps to a conversation and writes to an agent', async () => {
    const page = await open('#/c/zoo');
    await page.keyboard.type('magnolia');
    await page
      .getByRole('option', { name: /Plant a magnolia/ })
      .first()
      .click();
    await message(page, 'Plant a magnolia').first().waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('lena');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('@lead ');
  });

  itLong('it runs every action of the page, found by parts of its words in any order', async () => {
    const page = await stage.begin('actions', 'hello', 'Noted: hello');
    const run = async (words: string, name: string | RegExp) => {
      await page.keyboard.press('Control+k');
      await page.locator('.palette input:focus').waitFor();
      await page.keyboard.type(`>${words}`);
      expect(await textOf(page.locator('.palette').getByRole('option').first())).toMatch(name);
      await page.keyboard.press('Enter');
      await page.getByRole('dialog', { name: 'Actions and keys' }).waitFor({ state: 'detached' });
    };
    await run('stop all', /^Stop all agents/);
    await page.locator('.band-title', { hasText: 'The conversation was stopped' }).waitFor();
    await run('all res', /^Resume all agents/);
    await page.locator('.band-title', { hasText: 'resumed' }).first().waitFor();
    await run('exec phase', /^Phase: execute/);
    await page.locator('.band-title', { hasText: 'execute' }).waitFor();
    await run('mode chat', /^Mode: chat/);
    await run('floor dev', /^Give the floor to Dev/);
    await page.locator('.chip', { hasText: 'has the floor' }).waitFor();
    await run('why', /^Why did Lena Lead say that\?/);
    await expect.poll(() => page.url()).toMatch(/why\/\d+$/);
    await run('fork', /^Fork from entry \d+/);
    await expect.poll(() => page.url()).toMatch(/fork\/\d+$/);
    await run('what', /^What if\?/);
    await expect.poll(() => page.url()).toMatch(/what-if\/\d+$/);
    await run('timl', /^Timeline/);
    await expect.poll(() => page.url()).toMatch(/timeline$/);
    await run('dark', /^Theme: dark/);
    await expect
      .poll(() => page.evaluate('getComputedStyle(document.documentElement).colorScheme'))
      .toBe('dark');
    await run('rename', /^Rename, pin/);
    await page.getByRole('dialog', { name: /^Conversation/ }).waitFor();
    await page.keyboard.press('Escape');
    await run('inbox', /^Inbox/);
    await expect.poll(() => page.url()).toMatch(/#\/inbox$/);
    await page.reload();
    await page.locator('.console').waitFor(); // before, it listens to no key
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
    await run('theme sys', /^Theme: system/);
  });

  it('`?` lists the actions with their keys; those that need an entry are marked and do nothing here', async () => {
    const page = await stage.look('#/c/zoo');
    await message(page, 'Where does the quokka live?').first().waitFor();
    await page.evaluate('document.activeElement.blur()');
    await page.keyboard.press('?');
    await page.locator('.palette input:focus').waitFor();
    const help = page.getByRole('dialog', { name: 'Actions and keys' });
    expect(await textOf(help.getByRole('option', { name: /^Inbox/ }))).toMatch(/^Inbox\s+i$/);
    await page.keyboard.type('unfold');
    const unfold = help.getByRole('option', { name: /^Unfold the tools/ });
    expect(await unfold.getAttribute('aria-disabled')).toBe('true');
    await page.keyboard.press('Enter');
    expect(await unfold.isVisible()).toBe(true);
  });

  it('without a mark, conversations come before actions, so that a title starts nothing', async () => {
    await stage.post('stopper', 'Stop the train');
    const page = await open('#/c/zoo');
    await page.keyboard.type('train stop');
    await expect
      .poll(() => page.locator('.palette').getByRole('option').first().innerText())
      .toContain('Stop the train');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).toMatch(/#\/c\/stopper$/);
  });

  itLong(
    'Esc closes it, other keys of the page do nothing while it is open, and it says when nothing matches',
    async () => {
      const page = await open('#/c/zoo');
      await page.keyboard.type('nothingfitsthis');
      await page.getByText('Nothing matches.').waitFor();
      await page.keyboard.press('Escape');
      await page.getByRole('combobox', { name: /Search/ }).waitFor({ state: 'detached' });
      expect(page.url()).toMatch(/#\/c\/zoo$/);
    },
  );

  itLong('it fits 320 pixels', async () => {
    const page = await stage.look('', { viewport: { width: 320, height: 640 } });
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.keyboard.type('quokka');
    await page.locator('.palette mark').first().waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
  });
});
