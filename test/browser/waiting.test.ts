import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { layCable } from '../support/cable.ts';
import { itLong } from '../support/long.ts';
import { clickAgain, message, sharedStage, textOf, write } from './support.ts';

const SCRIPT = [
  { when: { last: '/^flaky/' }, reply: { error: { status: 429, message: 'Ask less often.' } } },
  { when: { last: '/^ponder/' }, reply: { error: { status: 400, message: 'No idea.' }, delayMs: 1_200 } },
  { when: { last: '/^fast/' }, reply: { text: 'word '.repeat(200), delayMs: 12 } },
  { when: { last: '/^wide/' }, reply: { text: `\`\`\`js\n${'const one = 1; '.repeat(40)}\n\`\`\`` } },
  { reply: { text: 'Noted: {{last}}' } },
];

describe.skipIf(chromiumPath === null)('texts in the console that come in pieces, late or not at all', () => {
  const stage = sharedStage(
    { settings: { retry: { attempts: 4, baseMs: 60_000, maxMs: 60_000 } }, script: SCRIPT },
    /net::ERR_|status of 4(00|29)/,
  );

  const { post } = stage;

  itLong(
    'an agent that works and has written nothing is shown as working, in the place of its text',
    async () => {
      const page = await stage.begin('slow', 'hello', 'Noted: hello');
      await post('slow', 'ponder');
      const working = page.locator('article.working');
      expect(await textOf(working)).toMatch(/Lena Lead\s+is working/);
      await message(page, 'No idea.').waitFor();
      expect(await working.count()).toBe(0);
    },
  );

  it('a model call that is repeated is shown with its attempt, its pause and the reason', async () => {
    const page = await stage.begin('busy', 'flaky');
    const working = page.locator('article.working');
    await expect
      .poll(() => working.innerText())
      .toMatch(/attempt [2-4] of 4 (in \d+ s|runs)\. Ask less often\. \(RATE_LIMITED\)/);
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await working.waitFor({ state: 'detached' });
  });

  itLong('a text keeps its place in its message when the log has it', async () => {
    const page = await stage.begin('place', 'hello', 'Noted: hello');
    await post('place', 'fast');
    const placeOfText = (article: string) =>
      page.evaluate(
        `(({ offsetTop }) => offsetTop)([...document.querySelectorAll('${article} .prose')].at(-1))`,
      );
    await page.locator('article.draft .prose').waitFor();
    const place = await placeOfText('article.draft');
    await page.locator('article.draft').waitFor({ state: 'detached', timeout: 30_000 });
    expect(await placeOfText('article.message')).toBe(place);
  });

  itLong('text that arrives in many small pieces changes the page in a third of the steps', async () => {
    const page = await stage.begin('pace', 'hello', 'Noted: hello');
    await page.evaluate(`(() => {
      window.steps = 0;
      let length = 0;
      const look = () => {
        const now = document.querySelector('article.draft .prose')?.textContent.length ?? 0;
        if (now > length) window.steps++;
        length = now;
      };
      new MutationObserver(look).observe(document.querySelector('.thread'), { subtree: true, childList: true, characterData: true });
    })()`);
    await post('pace', 'fast');
    await page.locator('article.draft').waitFor();
    await page.locator('article.draft').waitFor({ state: 'detached', timeout: 30_000 });
    expect(await page.evaluate('window.steps')).toBeGreaterThan(5);
    expect(await page.evaluate('window.steps')).toBeLessThan(200 / 3);
  });

  itLong('a code block that is wider than its message shows it by a shadow at the edge', async () => {
    const page = await stage.begin('wide', 'wide', 'const one');
    const code = await page.evaluate<{ readonly isWide: boolean; readonly layers: string }>(`(() => {
      const pre = document.querySelector('.prose pre');
      const { backgroundImage, backgroundAttachment } = getComputedStyle(pre);
      return { isWide: pre.scrollWidth > pre.clientWidth, layers: backgroundAttachment + ' ' + backgroundImage.split('linear-gradient').length };
    })()`);
    expect(code).toEqual({ isWide: true, layers: 'local, local, scroll, scroll, scroll 5' });
  });

  itLong(
    'a double click on Discard discards one message, not also the one that comes to its place',
    async () => {
      const cable = await layCable(stage.url);
      try {
        await post('kept', 'hello');
        const page = await stage.open('kept', 'Noted: hello', {}, cable.url);
        cable.cut();
        await page.locator('.away').waitFor();
        for (const text of ['the first', 'the second', 'the third']) await write(page, text);
        const kept = page.locator('.kept-posts li');
        await kept.nth(2).waitFor();
        await kept.last().getByRole('button', { name: 'Discard' }).click();
        await clickAgain(page);
        await kept.nth(2).waitFor({ state: 'detached' });
        expect((await kept.allInnerTexts()).map((text) => text.split('\n')[0])).toEqual([
          'the first',
          'the second',
        ]);
      } finally {
        await cable.close();
      }
    },
  );

  itLong(
    'a post over the rate is sent again when the daemon said, and not before, also if more are written',
    async () => {
      const page = await stage.begin('rated', 'hello', 'Noted: hello');
      let refusals = 0;
      let openAt = Number.POSITIVE_INFINITY;
      await page.route('**/messages', async (route) => {
        if (Date.now() >= openAt) return route.continue();
        refusals++;
        openAt = Math.min(openAt, Date.now() + 700);
        const json = { code: 'RATE_LIMITED', detail: 'Too many messages.', hint: '' };
        return route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json });
      });
      await write(page, 'the first');
      await page.locator('.kept-posts li', { hasText: 'Too many messages.' }).waitFor();
      await write(page, 'the second');
      await message(page, 'Noted: the second').waitFor({ timeout: 20_000 });
      expect(await message(page, 'Noted: the first').count()).toBe(1);
      expect(refusals).toBe(1);
    },
  );

  itLong(
    'a refused post whose text returned to the message field is not shown again as refused, also after a reload',
    async () => {
      const page = await stage.begin('told', 'hello', 'Noted: hello');
      await page.getByLabel('Your name').fill('Lena Lead');
      await write(page, 'I am an agent');
      await page.getByRole('alert').waitFor();
      await page.reload();
      await message(page, 'Noted: hello').waitFor();
      await expect.poll(() => page.getByLabel('Message', { exact: true }).inputValue()).toBe('I am an agent');
      expect(await page.locator('.kept-posts .refused').count()).toBe(0);
    },
  );

  itLong(
    'a conversation that waits to be sent is in the list and has the title of its first message',
    async () => {
      const cable = await layCable(stage.url);
      try {
        const page = await stage.look('#/new', {}, cable.url);
        await page.getByLabel('Message').waitFor();
        cable.cut();
        await page.locator('.away').waitFor();
        await write(page, 'A plan for\nthe garden');
        await expect.poll(() => textOf(page.locator('.head h2'))).toBe('A plan for the garden');
        const row = page.locator('.rows li', { hasText: 'A plan for the garden' });
        expect(await textOf(row)).toContain('waits to be sent');
        expect(await page.getByRole('button', { name: 'Stop', exact: true }).count()).toBe(0);
        cable.restore();
        await message(page, 'Noted: A plan').waitFor();
        await expect.poll(() => row.innerText()).toMatch(/now$/);
        expect(await row.count()).toBe(1);
        await stage.api('DELETE', `conversations/${new URL(page.url()).hash.replace('#/c/', '')}`);
        await expect.poll(() => row.count()).toBe(0);
      } finally {
        await cable.close();
      }
    },
  );
});
