import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { layCable } from '../support/cable.ts';
import { itLong } from '../support/long.ts';
import type { Project } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';
import { importLong, message, openItem, pressAlone, sharedStage, textOf, write } from './support.ts';
import { NASTY } from './team.ts';

/** Entries. */
const LONG = hasLongTests ? 10_000 : 2_000;

const PARAGRAPHS = '\n\nwith a second paragraph\n\n- and a list';

/** Runs in the page: counts the characters of code that become highlighted in each task. */
const COUNT_HIGHLIGHTED = `
  window.highlighted = [];
  const seen = new Set();
  new MutationObserver(() => {
    const fresh = [...document.querySelectorAll('pre:has(.hljs-keyword)')].filter((code) => !seen.has(code));
    for (const code of fresh) seen.add(code);
    if (fresh.length > 0) window.highlighted.push(fresh.reduce((sum, code) => sum + code.textContent.length, 0));
  }).observe(document.body, { childList: true, subtree: true });`;

async function writeNastyFile(project: Project): Promise<void> {
  await mkdir(join(project.root, 'project'));
  await writeFile(join(project.root, 'project/nasty.md'), NASTY);
}

/** More than one line. It is shown as a notice, since it is no refusal of this answer. */
const BUSY = {
  code: 'UNAVAILABLE',
  detail: 'The daemon that works on this conversation does not answer at the moment',
  hint: 'Try again in a moment, or look at the page of the team and the system.',
};

/** Where the controls of the page are, outside of a notice. */
const controlsOf = (page: Page) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('a, button, input, select, textarea, summary')]
    .filter((one) => one.checkVisibility() && !one.closest('.notice'))
    .map((one) => {
      const { x, y } = one.getBoundingClientRect();
      return [one.tagName, one.textContent, Math.round(x), Math.round(y)].join(' ');
    })`);

/** The controls that a notice lies on, as far as they can be seen. */
const coveredByNotice = (page: Page) =>
  page.evaluate<string[]>(`(() => {
    const notice = document.querySelector('.notice');
    const common = (a, b) => ({
      left: Math.max(a.left, b.left), top: Math.max(a.top, b.top),
      right: Math.min(a.right, b.right), bottom: Math.min(a.bottom, b.bottom),
    });
    const seen = (one) => {
      let box = one.getBoundingClientRect();
      for (let over = one.parentElement; over; over = over.parentElement)
        if (getComputedStyle(over).overflowY !== 'visible') box = common(box, over.getBoundingClientRect());
      return box;
    };
    return [...document.querySelectorAll('a, button, input, select, textarea, summary')]
      .filter((one) => one.checkVisibility() && !notice.contains(one))
      .filter((one) => {
        const { left, top, right, bottom } = common(seen(one), notice.getBoundingClientRect());
        return right - left > 1 && bottom - top > 1;
      })
      .map((one) => one.outerHTML);
  })()`);

describe.skipIf(chromiumPath === null)('the robustness of the console', () => {
  const stage = sharedStage({
    settings: { tools: { project: 'project' } },
    before: async (project) => {
      await writeNastyFile(project);
      await importLong(project, LONG, (index) => `message ${index}${index % 7 === 0 ? PARAGRAPHS : ''}`);
    },
  });

  const { post } = stage;

  it(`the console shows ${LONG} entries with few of them in the page, from the last to the first`, async () => {
    const page = await stage.open('long', `message ${LONG - 1}`);
    const inPage = async () => page.locator('.place').count();
    expect(await inPage()).toBeLessThan(60);
    await page.keyboard.press('g');
    await message(page, /message 0\b/).waitFor();
    expect(await inPage()).toBeLessThan(60);
    for (let n = 0; n < 5; n++) await page.keyboard.press('j');
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toMatch(/message 5\b/);
    expect(await page.evaluate('document.activeElement.getAttribute("aria-setsize")')).toBe(String(LONG + 1)); // the note of the import
    await page.keyboard.press('Shift+G');
    await message(page, `message ${LONG - 1}`).waitFor();
    expect(await textOf(message(page, `message ${LONG - 1}`).locator('.by .name'))).toBe('Lena Lead'); // its file has a slug
    await write(page, 'one more');
    await message(page, 'Noted: one more').waitFor();
  });

  itLong(
    'the end of a long thread and its state are shown while the older part is loaded, and the reader stays there',
    async () => {
      await stage.api('POST', 'conversations/long/phase', { phase: 'execute', publisher: 'alice' });
      const page = await stage.look('#/c/cut');
      const whole: (() => void)[] = [];
      await page.route(/\/long\/entries\?from=0&/, async (route) => {
        await new Promise<void>((load) => whole.push(load));
        await route.continue();
      });
      await page.evaluate("location.hash = '#/c/long'");
      await message(page, `message ${LONG - 1}`).waitFor();
      await page.getByText(new RegExp(`Loading the older part of ${LONG / 1_000},0\\d\\d entries`)).waitFor();
      expect(await page.locator('.controls').getByLabel('Phase').inputValue()).toBe('execute');
      await page.locator('.thread').hover();
      const scrolled = () => page.evaluate<number>("document.querySelector('.thread').scrollTop");
      const end = await scrolled();
      await page.mouse.wheel(0, -600);
      await expect.poll(scrolled).toBeLessThan(end - 550); // a wheel is not awaited
      const read = message(page, new RegExp(`message ${LONG / 100 - 1}\\d\\d`)).first();
      await read.waitFor();
      const [text, at] = [await read.innerText(), await read.boundingBox()];
      for (const load of whole) load();
      await page.locator('.loading').waitFor({ state: 'detached' });
      const there = page.locator('article', { hasText: text.split('\n').at(-1) ?? '' }).first();
      const moved = async () => Math.abs(((await there.boundingBox())?.y ?? 9_999) - (at?.y ?? 0));
      await expect.poll(moved).toBeLessThan(40); // heights above are estimates until they are rendered
    },
  );

  itLong(
    'a long conversation that was read stays read for a person who leaves it while it is loaded',
    async () => {
      const page = await stage.open('long', `message ${LONG - 1}`);
      const seen = () => page.evaluate<number>("JSON.parse(localStorage['parley.seen']).lengths.long");
      await expect.poll(seen).toBeGreaterThan(LONG);
      const whole = await seen();
      await page.route(/\/long\/entries\?from=\d+&limit=500/, () => undefined); // it never ends
      await page.evaluate("location.hash = '#/c/cut'");
      await message(page, `message ${LONG - 1}`).waitFor({ state: 'detached' });
      await page.evaluate("location.hash = '#/c/long'");
      await page.getByText('Loading the older part of').waitFor();
      await page.waitForTimeout(1_500); // what is open counts as read after half a second
      expect(await seen()).toBe(whole);
    },
  );

  const ROUNDS = hasLongTests ? 3 : 1;
  it('the console continues after a reconnect with nothing missing or repeated', async () => {
    const cable = await layCable(stage.url);
    try {
      const page = await stage.look('#/c/cut', {}, cable.url);
      await post('cut', 'number 0', { includeInContext: false });
      await message(page, 'number 0').waitFor();
      for (let round = 0; round < ROUNDS; round++) {
        cable.cut();
        await page.locator('.away', { hasText: 'Not connected' }).waitFor();
        for (let n = 1; n <= 3; n++)
          await post('cut', `number ${round * 3 + n}`, { includeInContext: false });
        cable.restore();
        await message(page, `number ${round * 3 + 3}`).waitFor();
      }
      await page.locator('.away').waitFor({ state: 'detached' });
      const numbers = await page.locator('article.message .prose').allInnerTexts();
      expect(numbers).toEqual(Array.from({ length: ROUNDS * 3 + 1 }, (_, n) => `number ${n}`));
      await stage.endOfTest(/net::ERR_/);
    } finally {
      await cable.close();
    }
  });

  itLong('no text, name or result becomes anything but text in the console', async () => {
    await post('nasty', 'nasty', { author: { name: '<img src=x onerror=alert(1)>' } });
    const page = await stage.look('#/c/nasty');
    await page.locator('article.by-agent .prose').waitFor();
    await write(page, 'read it');
    await message(page, 'I have read it.').waitFor();
    for (const fold of await page.locator('.call summary').all()) await fold.click();
    expect(await textOf(page.locator('.call pre').last())).toContain('<script>');
    await write(page, NASTY);
    await expect.poll(() => page.locator('article.by-person').count()).toBe(3);
    const made = await page.evaluate(
      'JSON.stringify([...document.querySelectorAll("#console img, #console script, #console style, #console iframe")].map((one) => one.outerHTML))',
    );
    expect(made).toBe('[]');
    const links = await page
      .locator('.prose a')
      .evaluateAll((all) => all.map((one) => one.getAttribute('href')));
    expect(new Set(links)).toEqual(new Set(['https://evil.example/pixel.png', 'https://example.org/']));
    expect(await page.title()).toMatch(/ · Parley$/);
    expect(await textOf(page.locator('.people'))).toContain('Dev <b>Ops</b>');
    expect(await textOf(page.locator('.people'))).toContain('<img src=x onerror=alert(1)>');
    await page.locator('a.why').last().click();
    await page.locator('.answer-panel .parts li').first().waitFor();
    expect(await textOf(page.locator('.answer-panel'))).toContain('<img src=x');
  });

  itLong('the console shows highlighted code and tables without style attributes', async () => {
    const page = await stage.begin('code', 'show code');
    expect(await textOf(page.locator('.prose .hljs-keyword'))).toBe('const');
    expect(await page.locator('.prose td.align-right').count()).toBe(1);
  });

  itLong('the numbers of a list, and the titles of its links, are those that were written', async () => {
    await post(
      'numbers',
      '816. is my ticket\n\nand\n\n7) seven\n8) [eight](https://example.org "the eighth")',
    );
    const page = await stage.look('#/c/numbers');
    const mine = page.locator('article.by-person').first();
    await mine.locator('ol').first().waitFor();
    const starts = mine.locator('ol').evaluateAll((lists) => lists.map((one) => one.getAttribute('start')));
    expect(await starts).toEqual(['816', '7']);
    expect(await mine.locator('.prose a').getAttribute('title')).toBe('the eighth');
    const left = await page.evaluate("getComputedStyle(document.querySelector('.prose ol')).paddingLeft");
    expect(Number.parseFloat(String(left))).toBeGreaterThan(30); // room for three digits
  });

  itLong(
    'of eight posts of a megabyte of code, a few thousand characters of each are highlighted, in tasks of their own, and no endless line',
    async () => {
      const block = `\`\`\`js\n${'const a = f(1);\n'.repeat(120)}\`\`\`\n`;
      const endless = `\`\`\`js\nconst ${'a'.repeat(1_000)}\n\`\`\`\n`;
      for (let number = 0; number < 8; number++) await post('bomb', endless + block.repeat(460));
      const page = await stage.look();
      await page.evaluate(COUNT_HIGHLIGHTED);
      await page.evaluate("location.hash = '#/c/bomb'");
      const more = page.getByRole('button', { name: /Show more/ });
      await expect.poll(() => more.count()).toBeGreaterThan(1); // those near the screen
      const first = page.locator('article.by-person pre').first();
      expect(await first.locator('.hljs-keyword').count()).toBe(0); // the endless line
      const all = page.locator('article.by-person');
      const withColours = all.filter({ has: page.locator('.hljs-keyword') });
      await expect.poll(async () => (await withColours.count()) === (await all.count())).toBe(true);
      const tasks = await page.evaluate<number[]>('window.highlighted');
      expect(tasks.length).toBeGreaterThan(1);
      expect(Math.max(...tasks)).toBeLessThan(4_200);
      const highlighted = await all.evaluateAll((articles) =>
        articles.map((article) =>
          [...article.querySelectorAll('pre')]
            .filter((code) => code.querySelector('.hljs-keyword'))
            .map((code) => code.textContent?.length ?? 0)
            .reduce((sum, length) => sum + length, 0),
        ),
      );
      expect(highlighted.length).toBeGreaterThan(1);
      for (const length of highlighted) {
        expect(length).toBeGreaterThan(1_000);
        expect(length).toBeLessThan(4_200); // with the buttons
      }
    },
  );

  it('the console can be used without a pointer, and Esc closes what it opened', async () => {
    await post('keys', 'hello');
    const page = await stage.look();
    await page.locator('.row').first().waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('keys');
    await expect.poll(() => page.locator('.row').count()).toBe(1);
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await message(page, 'Noted: hello').waitFor();
    await page.evaluate('document.activeElement.blur()');
    await page.keyboard.press('k');
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('ARTICLE');
    await expect.poll(() => outlineOf(page)).toBe('solid');
    await page.keyboard.press('Enter');
    await page.locator('.answer-panel').waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.answer-panel').waitFor({ state: 'detached' });
    await pressAlone(page, '?');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  });

  itLong.each([
    [320, 256], // 1,280 pixels at a zoom of 400 %
    [844, 250], // a phone on its side, with a keyboard
  ])(
    'in a window of %i × %i pixels nothing covers another part, and the thread has room',
    async (width, height) => {
      await post('low', 'hello');
      const page = await stage.look('#/c/low', { viewport: { width, height } });
      await message(page, 'Noted: hello').first().waitFor();
      const boxes = await page
        .locator('.page > .head, .page > .people, .thread, .page > .composer')
        .evaluateAll((all) =>
          all.map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => ({ top, bottom })),
        );
      expect(boxes).toHaveLength(4);
      for (const [place, { bottom }] of boxes.entries())
        expect(boxes[place + 1]?.top ?? bottom).toBeGreaterThanOrEqual(bottom - 1);
      expect((boxes[2]?.bottom ?? 0) - (boxes[2]?.top ?? 0)).toBeGreaterThan(150);
      const inside = await page
        .locator('.page > .head')
        .evaluate((head) => head.scrollHeight <= head.clientHeight + 1);
      expect(inside).toBe(true);
    },
  );

  itLong('the console fits a window of 320 pixels, in the dark mode too', async () => {
    await post('narrow', `a-very-long-word-${'x'.repeat(200)} and \`code ${'y'.repeat(120)}\``);
    const page = await stage.look('#/c/narrow', {
      viewport: { width: 320, height: 640 },
      colorScheme: 'dark',
    });
    await message(page, 'Noted:').waitFor();
    const width = () =>
      page.evaluate(
        'Math.max(...[...document.querySelectorAll("html, .page, .thread, .head, .people, .composer")].map((one) => one.scrollWidth))',
      );
    expect(await width()).toBe(320);
    expect(await page.locator('.sidebar').isVisible()).toBe(false);
    expect((await page.locator('.controls').boundingBox())?.height).toBeLessThan(40); // one row
    await page.getByRole('link', { name: 'Timeline' }).click();
    await page.locator('.timeline svg').first().waitFor();
    expect(await width()).toBe(320);
    await page.getByRole('link', { name: 'Back to the list' }).click();
    await page.locator('.sidebar').waitFor();
    expect(await width()).toBe(320);
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(23, 25, 28)');
  });

  it('the console shows what was refused, and what to do', async () => {
    const page = await stage.begin('refused', 'hello');
    await page.getByLabel('Your name').fill('Lena Lead');
    await page.getByLabel('Your name').press('Tab');
    expect(await textOf(page.locator('#name-fault'))).toBe(
      '“Lena Lead” is the name of an agent. Choose another one.',
    );
    await write(page, 'I am an agent');
    expect(await textOf(page.getByRole('alert'))).toMatch(/^Not sent: .*Choose another one/);
    expect(await textOf(page.getByRole('alert'))).not.toContain('--');
    expect(await page.getByLabel('Message').inputValue()).toBe('I am an agent');
    await page.setViewportSize({ width: 390, height: 800 });
    expect((await page.getByRole('alert').boundingBox())?.width).toBeGreaterThan(300);
    await page.setViewportSize({ width: 320, height: 256 }); // the page scrolls, and the notice does not
    await expect.poll(async () => (await page.getByRole('alert').boundingBox())?.y).toBe(0);
    await stage.endOfTest(/status of 400/);
  });

  it.each([
    ['beside the list', {}],
    ['on a phone', { viewport: { width: 390, height: 700 }, hasTouch: true, isMobile: true }],
  ])('when the connection is lost nothing moves under a hand, %s', async (_, options) => {
    const cable = await layCable(stage.url);
    try {
      await post('still', `last words${PARAGRAPHS.repeat(8)}`, { includeInContext: false });
      const page = await stage.look('#/c/still', options, cable.url);
      const last = message(page, 'last words').last().locator('.prose');
      await last.waitFor();
      await page.waitForTimeout(500); // it is at the end
      const controls = [page.locator('.head h2'), page.locator('.people'), page.getByLabel('Message')];
      const boxes = async () => {
        const all = await Promise.all([...controls, last].map((one) => one.boundingBox()));
        return all.map((box) => box && [Math.round(box.y), Math.round(box.height)]);
      };
      const before = await boxes();
      cable.cut();
      await page.locator('.away', { hasText: 'Not connected' }).waitFor();
      await page.waitForTimeout(300);
      expect(await boxes()).toEqual(before);
      cable.restore();
      await page.locator('.away').waitFor({ state: 'detached' });
      expect(await boxes()).toEqual(before);
      await stage.endOfTest(/net::ERR_/);
    } finally {
      await cable.close();
    }
  });

  it('the console says once that an unreachable daemon did not confirm what was pressed, and says when it can be repeated', async () => {
    const cable = await layCable(stage.url);
    try {
      await post('away', 'hello', { includeInContext: false });
      const page = await stage.open('away', 'hello', {}, cable.url);
      cable.cut();
      const lost = page.locator('.away', { hasText: 'Not connected' });
      await lost.waitFor();
      await page.getByRole('button', { name: 'Stop' }).click();
      await lost.filter({ hasText: 'was not confirmed: see later whether to repeat it' }).waitFor();
      expect(await page.getByRole('alert').count()).toBe(0); // it is said once
      cable.restore();
      await lost.waitFor({ state: 'detached' });
      expect(await textOf(page.getByRole('alert'))).toContain('Your last action was not confirmed');
      await stage.endOfTest(/net::ERR_/);
    } finally {
      await cable.close();
    }
  });

  itLong(
    'the console removes a refusal after a while and in another conversation, and never covers what is used',
    async () => {
      await post('kept-a', 'hello');
      await post('kept-b', 'hello');
      const page = await stage.look('#/c/kept-a');
      const alert = page.getByRole('alert');
      await page.getByLabel('Your name').fill('Lena Lead');
      await page.getByLabel('Your name').press('Tab');
      await write(page, 'I am an agent');
      await alert.waitFor();
      expect(await coveredByNotice(page)).toEqual([]);
      await page.evaluate("location.hash = '#/c/kept-b'");
      await alert.waitFor({ state: 'detached', timeout: 2_000 });
      await page.clock.install();
      await write(page, 'I am an agent here, too');
      await alert.waitFor();
      await expect
        .poll(() => page.clock.fastForward(11_000).then(() => alert.count())) // its timer may start later
        .toBe(0);
      await stage.endOfTest(/status of 400/);
    },
  );

  const WINDOWS = [
    [1280, 820],
    [320, 640],
    [390, 844],
    [640, 410],
  ] as const;
  itLong.each(WINDOWS)(
    'a notice neither moves nor covers a control, in the thread and in the inbox, at %i × %i',
    async (width, height) => {
      const conversation = `refused-${width}`;
      await post(conversation, `write it ${conversation}`);
      const page = await stage.look(`#/c/${conversation}`, { viewport: { width, height } });
      const alert = page.getByRole('alert');
      await page.route('**/api/approvals/*', (route) => route.fulfill({ status: 503, json: BUSY }));
      for (const hash of [`#/c/${conversation}`, '#/inbox']) {
        await page.evaluate(`location.hash = '${hash}'`);
        if (hash === '#/inbox') await openItem(page, conversation);
        const approve = page.locator('.ask-card').getByRole('button', { name: 'Approve' });
        const readOn = page.getByRole('button', { name: 'Read on to answer' });
        const isSeen = async () => {
          // It leads to the beginning, if that was not in sight, and then to the end; meanwhile it may go.
          if (await readOn.isVisible())
            await readOn.press('Enter', { timeout: 1_000 }).catch(() => undefined);
          return page.locator('.ask-card.seen').isVisible();
        };
        await expect.poll(isSeen, { timeout: 20_000 }).toBe(true);
        await approve.hover();
        const before = await controlsOf(page);
        const press = async () => {
          await approve.click(); // it ignores a click just after it came
          return alert.isVisible();
        };
        await expect.poll(press).toBe(true);
        expect(await controlsOf(page)).toEqual(before);
        expect(await coveredByNotice(page)).toEqual([]);
        await page.getByRole('button', { name: 'Dismiss', exact: true }).click();
        await alert.waitFor({ state: 'detached' });
        expect(await controlsOf(page)).toEqual(before);
      }
      await stage.endOfTest(/status of 503/);
    },
  );

  it('the console keeps the draft of each conversation over a reload until it is sent', async () => {
    const page = await stage.begin('draft-a', 'hello');
    const field = page.getByLabel('Message');
    await field.fill('half a sentence');
    await page.evaluate("location.hash = '#/new'");
    await expect.poll(() => field.inputValue()).toBe('');
    await field.fill('something new');
    await page.reload();
    await expect.poll(() => field.inputValue()).toBe('something new');
    await page.evaluate("location.hash = '#/c/draft-a'");
    await expect.poll(() => field.inputValue()).toBe('half a sentence');
    await field.press('Enter');
    await message(page, 'Noted: half a sentence').waitFor();
    await page.reload();
    await message(page, 'Noted: half a sentence').waitFor();
    expect(await field.inputValue()).toBe('');
  });
});

const outlineOf = (page: Page) => page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
