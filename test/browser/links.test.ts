import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { hasLongTests } from '../support/runs.ts';
import { escapeLater, message, sharedStage, textOf } from './support.ts';

/** Addresses of conversations, entries and panels. */
describe.skipIf(chromiumPath === null)('the addresses of the console', () => {
  const stage = sharedStage();

  interface Line {
    readonly index: number;
    readonly content?: string;
  }
  const entriesOf = async (conversation: string) =>
    (await stage.api<{ entries?: Line[] }>('GET', `conversations/${conversation}/entries`)).entries ?? [];
  /** The index of the answer to each post. */
  const talk = async (conversation: string, ...contents: string[]) => {
    const answers: number[] = [];
    for (const content of contents) {
      await stage.api('POST', `conversations/${conversation}/messages`, { content, publisher: 'alice' });
      const isAnswer = ({ content: text }: Line) => text === `Noted: ${content}`;
      await expect
        .poll(async () => (await entriesOf(conversation)).some(isAnswer), { interval: 10 })
        .toBe(true);
      answers.push((await entriesOf(conversation)).find(isAnswer)?.index ?? -1);
    }
    return answers;
  };
  const lines = (name: string) =>
    Array.from({ length: 8 }, (_, n) => `${name} ${n} ${'words '.repeat(40)}end`);

  itLong(
    'the address of an explanation opens it and shows its entry, whichever conversation was open before',
    async () => {
      const [, second = -1] = await talk('target', ...lines('target'));
      await talk('other', ...lines('other'));
      for (const from of hasLongTests ? ['#/c/other', '#/', `#/c/other/why/${second}`] : ['#/c/other']) {
        const page = await stage.look(from);
        await page.locator('.row').first().waitFor();
        if (from !== '#/')
          await message(page, /other \d+ words/)
            .first()
            .waitFor();
        await page.evaluate(`location.hash = '#/c/target/why/${second}'`);
        await page.locator('.answer-panel .account').waitFor();
        expect(await textOf(page.locator('.answer-panel'))).toContain('target 1');
        expect(await textOf(page.locator('.answer-panel'))).not.toContain('other');
        const entry = message(page, /Noted: target 1 words/);
        await expect.poll(() => entry.isVisible()).toBe(true);
        await expect.poll(() => entry.evaluate((one) => one.getBoundingClientRect().top)).toBeGreaterThan(0);
        expect(await page.evaluate('document.activeElement.id')).toBe('answer');
      }
      const page = await stage.look(`#/c/target/why/${second}`);
      await expect.poll(() => message(page, /Noted: target 1 words/).isVisible()).toBe(true);
    },
  );

  it('the address of no conversation says so, and offers the list or to begin it', async () => {
    await talk('known', 'hello');
    const page = await stage.look('#/c/nowhere');
    const said = page.getByRole('status').filter({ hasText: 'There is no conversation nowhere' });
    await said.waitFor();
    expect(await page.locator('.controls').count()).toBe(0);
    await page.getByLabel('Message').fill('begin');
    await page.getByLabel('Message').press('Enter');
    await message(page, 'Noted: begin').waitFor();
    await said.waitFor({ state: 'detached' });
    await page.locator('.controls').getByRole('button', { name: 'Stop' }).waitFor();
    await page.evaluate("location.hash = '#/c/nothing'");
    await page.getByText('There is no conversation nothing').waitFor();
    await page.getByRole('link', { name: 'Open the list' }).click();
    expect(page.url()).toMatch(/#\/$/);
  });

  itLong('an address that the console does not have says so, and offers the list', async () => {
    const page = await stage.look('#/nonsense');
    await page.getByText('The console has no page with this address.').waitFor();
    await page.getByRole('link', { name: 'Open the list' }).click();
    await page.getByRole('heading', { name: 'New conversation' }).waitFor();
    for (const place of ['why/abc', 'entry/', 'nonsense']) {
      await page.evaluate(`location.hash = '#/c/any/${place}'`);
      await page.getByText('The console has no page with this address.').waitFor();
      await page.evaluate("location.hash = '#/'");
      await page.getByRole('heading', { name: 'New conversation' }).waitFor();
    }
  });

  itLong(
    'Esc closes the filters, and later leads from the thread to the list, which stays beside it',
    async () => {
      await talk('filtered', 'hello');
      const page = await stage.open('filtered', 'Noted: hello');
      await page.getByRole('button', { name: 'Filter' }).click();
      await page.locator('.filters').waitFor();
      await page.keyboard.press('Escape');
      await page.locator('.filters').waitFor({ state: 'detached' });
      expect(page.url()).toMatch(/#\/c\/filtered$/);
      await escapeLater(page);
      await expect.poll(() => page.evaluate('document.activeElement.className')).toMatch(/^row/);
      expect(page.url()).toMatch(/#\/c\/filtered$/);
    },
  );

  itLong(
    'a person who closes something with two quick Esc keeps the conversation, whatever was open (KEYS-1)',
    async () => {
      await talk('kept', 'hello');
      const page = await stage.open('kept', 'Noted: hello');
      const escapeTwice = async () => {
        await escapeLater(page);
        await page.keyboard.press('Escape');
        await expect.poll(() => page.url()).toMatch(/#\/c\/kept$/);
      };
      await message(page, 'Noted: hello')
        .getByRole('link', { name: /Why did/ })
        .click();
      await page.locator('.answer-panel').waitFor();
      await escapeTwice();
      await page.locator('.answer-panel').waitFor({ state: 'detached' });
      await page.keyboard.press('t');
      await expect.poll(() => page.url()).toMatch(/timeline$/);
      await escapeTwice();
      await page.getByLabel('Message', { exact: true }).focus();
      await escapeTwice();
      await page.getByRole('button', { name: 'More', exact: true }).click();
      await escapeTwice();
      await page.keyboard.press('?');
      await page.getByRole('dialog').waitFor();
      await escapeTwice();
      await page.keyboard.press('n');
      await expect.poll(() => page.url()).toMatch(/#\/new$/);
      await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('composer');
      await page.evaluate('document.activeElement.blur()');
      await escapeLater(page);
      await expect.poll(() => page.url()).toMatch(/#\/c\/kept$/);
    },
  );

  itLong('the address of an entry that does not exist, or is not an answer, says so', async () => {
    await talk('short', 'hello');
    const page = await stage.look('#/c/short/entry/3000');
    await page.locator('main').getByText('This conversation has no entry 3000.').waitFor();
    await page.evaluate("location.hash = '#/c/short/why/4000'");
    await page.locator('.answer-panel').getByText('This conversation has no entry 4000.').waitFor();
    await page.evaluate("location.hash = '#/c/short/why/0'");
    await page.locator('.answer-panel').getByText('Entry 0 is not an answer of an agent.').waitFor();
    await page.locator('.answer-panel').getByRole('link', { name: 'Open the conversation' }).click();
    await page.locator('.answer-panel').waitFor({ state: 'detached' });
    await message(page, 'Noted: hello').waitFor();
  });

  it('messages that arrive below are counted, for screen readers too, and a click shows them', async () => {
    await talk('below', ...lines('line'));
    const page = await stage.open('below', 'Noted: line 7');
    await page.locator('.thread').hover();
    await page.mouse.wheel(0, -9_000);
    await page.getByRole('button', { name: 'Newest' }).waitFor();
    await talk('below', 'news');
    await page.getByRole('button', { name: /^\d new messages?/ }).waitFor();
    await page
      .getByRole('status')
      .filter({ hasText: /^2 new messages below$/ })
      .waitFor(); // and its answer
    await page.getByRole('button', { name: '2 new messages' }).click();
    await message(page, 'Noted: news').waitFor();
    await page.getByRole('button', { name: /new message/ }).waitFor({ state: 'detached' });
  });
});
