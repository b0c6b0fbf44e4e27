import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { startCountingProxy } from '../support/counting-proxy.ts';
import { itLong } from '../support/long.ts';
import type { Project } from '../support/project.ts';
import { on } from '../support/route-rules.ts';
import { hasLongTests } from '../support/runs.ts';
import { message, sharedStage, textOf, write } from './support.ts';
import { AGENTS, RULES as TEAM_RULES } from './team.ts';

const DAYS = ['2026-03-01T10:00:00.000Z', '2026-03-01T11:00:00.000Z', '2026-03-04T09:30:15.000Z'];

/** A conversation of earlier days, and a long one. */
async function importOld(project: Project): Promise<void> {
  const author = { kind: 'person', id: 'alice', name: 'Alice' };
  const entry = (content: string, index: number, createdAt: string) =>
    JSON.stringify({ index, id: `m${index}`, createdAt, type: 'message', role: 'user', author, content });
  const days = DAYS.map((at, n) => entry(`of day ${n}`, n, at));
  const long = Array.from({ length: 400 }, (_, n) =>
    entry(`number ${n}\n\n${'more text '.repeat(1 + (n % 40))}`, n, String(DAYS[0])),
  );
  const parts = [
    '| a | b |\n|---|---|\n| 1 | 2 |\n'.padEnd(320, '| 3 | 4 |\n'),
    `\`\`\`js\n${'let a = 1;\n'.repeat(30)}\`\`\``,
    ...['short', 'words', '- one\n- two\n- three\n'.repeat(4), 'brief', 'x', 'y', 'z'],
  ];
  const mixed = Array.from({ length: 1060 }, (_, n) =>
    entry(`number ${n}\n\n${parts[(n * 7 + (n % 5)) % parts.length]}`, n, String(DAYS[0])),
  );
  for (const [name, lines] of Object.entries({ days, long, mixed })) {
    const file = join(project.root, `${name}.jsonl`);
    await writeFile(file, `${lines.join('\n')}\n`);
    const { code, stderr } = await project.parley('import', file, '--conversation', name);
    if (code !== 0) throw new Error(stderr);
  }
}

const RULES = [
  on('/^grow/', {
    text: `The first paragraph stays.\n\nThe second one ${'grows word by word '.repeat(16)}until **its end**.\n\n- a list`,
    delayMs: 25,
  }),
  on('/^signs/', {
    text: '\u001b[31mred\u001b[0m words\n\nשלום עולם\n\nan \u202eoverride\n\n```js\nconst a = "\u2066b";\n```\n\n| a |\n|-|\n| 1 |',
  }),
  on('/^two codes/', { text: '\u001b[0m```\necho shown\n\u001b[0m```\n\n~~~\necho other\n~~~' }),
  on('/^hebrew/', { text: 'שלום עולם\n\n- אחד\n\n> שתיים\n\n```js\nlet a = 1;\n```' }),
  ...TEAM_RULES,
];

describe.skipIf(chromiumPath === null)('the thread of the console', () => {
  const stage = sharedStage({
    agents: {
      ...AGENTS,
      ops: '---\nname: Otto Ops\ndescription: runs\n---\nYou run.',
      qa: '---\nname: Quinn\ndescription: checks\n---\nYou check.',
    },
    script: RULES,
    before: importOld,
  });

  const { post } = stage;

  itLong('each day has a heading, and a time shows its full date to the pointer', async () => {
    const page = await stage.open('days', 'of day 2', { timezoneId: 'UTC', locale: 'en-GB' });
    const days = await page.locator('.day').allInnerTexts();
    expect(days.map((day) => day.replace(',', ''))).toEqual([
      'Sunday 1 March 2026',
      'Wednesday 4 March 2026',
      'Today', // the import
    ]);
    const time = message(page, 'of day 2').locator('time');
    expect(await time.getAttribute('title')).toMatch(/^Wednesday,? 4 March 2026 at 09:30:15$/);
    await write(page, 'and today');
    await message(page, 'Noted: and today').waitFor();
    expect(await page.locator('.day').last().innerText()).toBe('Today');
  });

  const select = (page: Page, selector: string) =>
    page.evaluate(
      `getSelection().selectAllChildren([...document.querySelectorAll(${JSON.stringify(selector)})].at(-1))`,
    );
  const selection = (page: Page) => page.evaluate<string>('getSelection().toString()');

  itLong('a selection in a text is kept while the text is written, and when it is in the log', async () => {
    const page = await stage.look('#/c/grows');
    await page.locator('.composer').waitFor();
    await post('grows', 'grow');
    await page.locator('.draft p', { hasText: 'second one grows' }).waitFor();
    await page.evaluate(
      `(([text]) => getSelection().setBaseAndExtent(text, 4, text, 20))(document.querySelector('.draft .prose p:last-child').childNodes)`,
    );
    const selected = await selection(page);
    expect(selected).toBe('second one grows');
    await message(page, 'its end').and(page.locator(':not(.draft)')).waitFor({ timeout: 20_000 });
    expect(await selection(page)).toBe(selected);
    expect(await page.locator('.prose li', { hasText: 'a list' }).count()).toBe(1);
    expect(await message(page, 'its end').locator('.prose strong').innerText()).toBe('its end');
  });

  itLong(
    'messages that arrive while a text at the end is selected are counted, and shown by the button',
    async () => {
      for (let n = 0; n < 8; n++) await post('marked', `line ${n}`, { includeInContext: false });
      const page = await stage.open('marked', 'line 7', { viewport: { width: 1_000, height: 500 } });
      await select(page, 'article.by-person .prose');
      for (const n of [8, 9, 10]) await post('marked', `line ${n}`, { includeInContext: false });
      await page.getByRole('button', { name: '3 new messages' }).click();
      await expect
        .poll(async () => (await message(page, 'line 10').boundingBox())?.y ?? 999)
        .toBeLessThan(500);
      expect(await selection(page)).toBe('line 7');
    },
  );

  itLong(
    'a selection elsewhere in the thread is kept and stays in sight while a text is written',
    async () => {
      for (let n = 0; n < 8; n++) await post('held', `line ${n}`, { includeInContext: false });
      const page = await stage.open('held', 'line 7', { viewport: { width: 1_000, height: 500 } });
      await select(page, 'article.by-person .prose');
      expect(await selection(page)).toBe('line 7');
      await post('held', 'grow');
      await page.locator('.draft p', { hasText: 'second one grows' }).waitFor();
      await message(page, 'its end').and(page.locator(':not(.draft)')).waitFor({ timeout: 20_000 });
      expect(await selection(page)).toBe('line 7');
      expect(await message(page, 'line 7').isVisible()).toBe(true);
    },
  );

  const atTop = (page: Page) =>
    page.evaluate<string>(
      `[...document.querySelectorAll('.place')].find((one) => one.getBoundingClientRect().bottom > document.querySelector('.thread').getBoundingClientRect().top + 5)?.innerText.match(/number \\d+/)?.[0] ?? ''`,
    );

  it('the thread does not move under a pressed button, and then follows its end', async () => {
    await stage.post('pressed', `The first one.\n\n${'a line\n\n'.repeat(30)}`);
    await stage.post('pressed', 'The second one.');
    const page = await stage.look('#/c/pressed', { permissions: ['clipboard-read', 'clipboard-write'] });
    const answer = message(page, 'Noted: The second one.');
    await answer.hover();
    const button = answer.getByRole('button', { name: /^Copy entry/ });
    await button.hover();
    await page.evaluate(
      "addEventListener('click', ({ target }) => { window.clicked = target.closest('button')?.ariaLabel })",
    );
    await page.mouse.down();
    await stage.post('pressed', `The third one.\n\n${'a line\n\n'.repeat(8)}`);
    await expect
      .poll(() => page.locator('article', { hasText: 'The third one.' }).count())
      .toBeGreaterThan(0);
    await page.waitForTimeout(200);
    await page.mouse.up();
    expect(await page.evaluate('window.clicked')).toMatch(/^Copy entry/);
    await expect
      .poll(() =>
        page.locator('.thread').evaluate((one) => one.scrollHeight - one.clientHeight - one.scrollTop),
      )
      .toBeLessThan(5);
  });

  itLong('the place in the thread is kept over switching, the timeline and a reload', async () => {
    const page = await stage.open('long', 'number 399');
    await page.locator('.thread').hover();
    await page.mouse.wheel(0, -9_000);
    await expect.poll(() => atTop(page)).not.toMatch(/39\d|^$/);
    await page.waitForTimeout(300); // the heights above are measured
    const place = await atTop(page);
    await page.evaluate("location.hash = '#/c/days'");
    await message(page, 'of day 2').waitFor();
    await page.goBack();
    await expect.poll(() => atTop(page)).toBe(place);
    await page.getByRole('link', { name: 'Timeline' }).click();
    await page.locator('.timeline').waitFor();
    await page.getByRole('link', { name: 'Thread' }).click();
    await expect.poll(() => atTop(page)).toBe(place);
    await page.reload();
    await expect.poll(() => atTop(page)).toBe(place);
    await page.getByRole('button', { name: 'Newest' }).click();
    await message(page, 'number 399').waitFor();
    await page.reload();
    await message(page, 'number 399').waitFor();
  });

  itLong('a thread with tables and code is scrolled up by as much as the wheel turns', async () => {
    const page = await stage.open('mixed', 'number 1059');
    await page.getByText('Loading the older part').waitFor({ state: 'detached' });
    await page.locator('.thread').hover();
    const moved: number[] = [];
    for (let step = 0; step < 100; step++) {
      await page.evaluate(`{
        const thread = document.querySelector('.thread');
        const { top } = thread.getBoundingClientRect();
        globalThis.first = [...thread.querySelectorAll('.place')].find((one) => one.getBoundingClientRect().bottom > top + 5);
        globalThis.before = first.getBoundingClientRect().top;
      }`);
      await page.mouse.wheel(0, -300);
      const isMoved = '!first.isConnected || first.getBoundingClientRect().top !== before';
      await expect.poll(() => page.evaluate(isMoved)).toBe(true);
      await page.waitForTimeout(250);
      moved.push(
        await page.evaluate(
          'Math.round(first.isConnected ? first.getBoundingClientRect().top - before : 9_999)',
        ),
      );
    }
    expect(moved.filter((by) => Math.abs(by - 300) > 2)).toEqual([]);
  });

  itLong('what is unfolded stays unfolded over switching and a reload', async () => {
    const page = await stage.begin('folds', 'write it');
    await page.getByRole('button', { name: 'Approve' }).click();
    const call = page.locator('.call.done');
    await call.locator('summary').click();
    await call.getByText('Arguments').waitFor();
    await page.evaluate("location.hash = '#/c/days'");
    await message(page, 'of day 2').waitFor();
    await page.goBack();
    await call.getByText('Arguments').waitFor();
    await page.reload();
    await call.getByText('Arguments').waitFor();
  });

  it('the head shows the title that the list shows', async () => {
    const page = await stage.begin('titled', 'a first message that names the conversation');
    const heading = page.locator('.head h2');
    await expect.poll(() => heading.innerText()).toBe('a first message that names the conversation');
    await expect.poll(() => page.title()).toMatch(/^.*a first message that names the conversation · Parley$/);
    await stage.api('POST', 'conversations/titled/label', { title: 'Photos' });
    await expect.poll(() => heading.innerText()).toBe('Photos');
  });

  itLong(
    'colour codes are removed, directions follow the text, and hidden directions are visible',
    async () => {
      const page = await stage.begin('signs', 'signs');
      const prose = page.locator('article.by-agent .prose');
      expect(await textOf(prose)).toMatch(/^red words/);
      expect(await textOf(prose)).toContain('an \\u202eoverride');
      expect(await textOf(prose.locator('pre'))).toContain('"\\u2066b"');
      const start = (text: string) =>
        prose.locator('p', { hasText: text }).evaluate((one) => {
          const range = one.ownerDocument.createRange();
          range.selectNodeContents(one);
          return range.getBoundingClientRect().right > one.getBoundingClientRect().right - 2;
        });
      expect([await start('red words'), await start('שלום')]).toEqual([false, true]);
    },
  );

  itLong(
    'in a text that is read from the right, lists stay inside, and code is read from the left',
    async () => {
      const page = await stage.begin('right', 'hebrew');
      const prose = page.locator('article.by-agent .prose');
      await prose.locator('pre').waitFor();
      const styleOf = (selector: string, name: string) =>
        page.evaluate<string>(
          `getComputedStyle(document.querySelector('.by-agent .prose ${selector}')).${name}`,
        );
      expect(await styleOf('li', 'direction')).toBe('rtl');
      expect(Number.parseFloat(await styleOf('ul', 'paddingRight'))).toBeGreaterThan(10);
      expect(await styleOf('blockquote', 'borderRightWidth')).toBe('2px');
      expect(await styleOf('pre', 'direction')).toBe('ltr');
    },
  );

  it('a list of tasks has a box in front of each item, in the text and in the list of conversations', async () => {
    const page = await stage.begin('tasks', 'Do *these*:\n- [x] write\n- [ ] *tell* [x] them');
    const items = page.locator('article.by-person .prose li');
    await expect.poll(() => items.allInnerTexts()).toEqual(['☑ write', '☐ tell [x] them']);
    await expect
      .poll(() => textOf(page.locator('.row[href="#/c/tasks"] .preview')))
      .toContain('☑ write ☐ tell');
  });

  it('an entry has an address, which selects it', async () => {
    const page = await stage.look('#/c/long/entry/40');
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toMatch(/number 40\b/);
    await message(page, 'number 41').getByRole('link', { name: 'Entry 41', exact: true }).click();
    expect(page.url()).toMatch(/#\/c\/long\/entry\/41$/);
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toMatch(/number 41\b/);
  });

  itLong('the address of an entry shows it, also if the rest of the thread arrives later', async () => {
    const proxy = await startCountingProxy(stage.url, { after: 'number 40', ms: 1_000 });
    const page = await stage.look('#/c/long/entry/40', {}, proxy.url);
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toMatch(/number 40\b/);
    await page.getByRole('button', { name: 'Newest' }).waitFor(); // the rest is there
    expect(await message(page, 'number 40').isVisible()).toBe(true);
    await page.close();
    await proxy.close();
  });

  it('a conversation can be downloaded as Markdown and as JSON', async () => {
    const page = await stage.begin('saved', 'show code');
    await page.locator('article.by-agent .code').waitFor();
    const download = async (name: string) => {
      await page.locator('.controls [aria-label=More]').click();
      const started = page.waitForEvent('download');
      await page.getByRole('button', { name }).click();
      const saved = await started;
      return { name: saved.suggestedFilename(), text: await readFile(await saved.path(), 'utf8') };
    };
    const markdown = await download('Download as Markdown');
    expect(markdown.name).toBe('show-code-saved.md');
    expect(markdown.text).toMatch(
      /^# show code\n\n## alice \(.* UTC, entry 0\)\n\n> show code\n\n## Lena Lead \(.*\)\n\n> ```js\n/,
    );
    const json = await download('Download as JSON (OpenAI messages)');
    expect(json.name).toBe('show-code-saved.json');
    expect(JSON.parse(json.text)).toMatchObject([
      { role: 'user', content: 'show code', name: 'alice' },
      { role: 'assistant', name: 'lead' },
    ]);
  });

  itLong(
    'the view stays at the end when its last entry grows before the event of the last scroll',
    async () => {
      for (let n = 0; n < 12; n++) await post('grown', `message ${n}`, { includeInContext: false });
      const page = await stage.open('grown', 'message 11');
      await page.evaluate(`{
      const thread = document.querySelector('.thread');
      [...thread.querySelectorAll('article')].at(-1).style.paddingBottom = '300px';
      thread.dispatchEvent(new Event('scroll'));
    }`);
      const below = `(({ scrollHeight, clientHeight, scrollTop }) => Math.round(scrollHeight - clientHeight - scrollTop))(document.querySelector('.thread'))`;
      await expect.poll(() => page.evaluate(below)).toBe(0);
      expect(await page.locator('.newest').count()).toBe(0);
    },
  );

  it.each(hasLongTests ? ['G', 'k'] : ['k'])(
    'the view at the end follows new messages after %s, which moved the focus alone',
    async (key) => {
      const id = `focused-${key}`;
      for (let n = 0; n < 12; n++) await post(id, `message ${n}`, { includeInContext: false });
      const page = await stage.open(id, 'message 11');
      await page.getByLabel('Message').press('Escape');
      await page.keyboard.press(key);
      await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('ARTICLE');
      for (let n = 0; n < 3; n++)
        await post(id, `later ${n}\n\n${'more text '.repeat(100)}`, { includeInContext: false });
      await message(page, 'later 2').waitFor();
      const below = `(({ scrollHeight, clientHeight, scrollTop }) => Math.round(scrollHeight - clientHeight - scrollTop))(document.querySelector('.thread'))`;
      await expect.poll(() => page.evaluate(below)).toBe(0);
      expect(await page.locator('.newest').count()).toBe(0);
    },
  );

  itLong('the menus of a conversation and of each agent are in sight on a phone', async () => {
    await post('phone', 'hello');
    await stage.api('POST', 'conversations/phone/stop', { publisher: 'alice' });
    for (const width of [320, 390]) {
      const page = await stage.open('phone', 'Noted: hello', { viewport: { width, height: 700 } });
      await page.locator('.controls [aria-label=More]').click();
      const expectInSight = async (name: string) => {
        const box = await page.getByRole('button', { name }).boundingBox();
        expect(box?.x).toBeGreaterThanOrEqual(0);
        expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
      };
      await expectInSight('Download as JSON (OpenAI messages)');
      await page.keyboard.press('Escape');
      await page.locator('.chip.stopped').nth(1).waitFor(); // the words make the row longer
      for (const [place, slug] of ['dev', 'lead', 'ops', 'qa'].entries()) {
        await page.locator('button.chip').nth(place).click();
        await expectInSight(`Write to @${slug}`);
      }
    }
  });

  itLong('a message, its code and its link can be copied', async () => {
    await post('copied', 'show code');
    const page = await stage.look('#/c/copied', { permissions: ['clipboard-read', 'clipboard-write'] });
    const copied = () => page.evaluate<string>('navigator.clipboard.readText()');
    const answer = page.locator('article.by-agent');
    await answer.hover();
    await answer.getByRole('button', { name: 'Copy entry 2' }).click();
    await expect.poll(copied).toBe('```js\nconst one = 1;\n```\n\n| a | b |\n|--:|:-:|\n| 1 | 2 |');
    await answer.getByRole('button', { name: 'Copy the link to entry 2' }).click();
    await expect.poll(copied).toBe(`${stage.url}/#/c/copied/entry/2`);
    await answer.locator('pre').hover();
    await answer.getByRole('button', { name: 'Copy the code' }).click();
    await expect.poll(copied).toBe('const one = 1;\n');
  });

  itLong('a message, its link and its code can be copied by keyboard', async () => {
    await post('by-key', 'show code');
    const page = await stage.look('#/c/by-key', { permissions: ['clipboard-read', 'clipboard-write'] });
    await page.locator('article.by-agent pre').waitFor();
    await page.keyboard.press('Shift+G');
    const copied: string[] = [];
    for (let n = 0; n < 12; n++) {
      await page.keyboard.press('Tab');
      const name = await page.evaluate<string>('document.activeElement.getAttribute("aria-label") ?? ""');
      if (!name.startsWith('Copy')) continue;
      await expect.poll(() => page.evaluate('getComputedStyle(document.activeElement).opacity')).toBe('1');
      await page.keyboard.press('Enter');
      await expect.poll(() => page.evaluate('document.activeElement.textContent')).toMatch(/copied/i);
      copied.push(name, await page.evaluate<string>('navigator.clipboard.readText()'));
    }
    expect(copied).toEqual([
      ...['Copy entry 2', '```js\nconst one = 1;\n```\n\n| a | b |\n|--:|:-:|\n| 1 | 2 |'],
      ...['Copy the link to entry 2', `${stage.url}/#/c/by-key/entry/2`],
      ...['Copy the code', 'const one = 1;\n'],
    ]);
  });

  itLong('beside a panel, the actions of the selected entry are whole', async () => {
    const page = await stage.begin('beside', 'hello', 'Noted: hello');
    await page.evaluate("location.hash += '/why/2'");
    await page.locator('.answer-panel .account').waitFor();
    const entry = message(page, 'Noted: hello');
    await entry.focus();
    const heightOf = async (name: string) => (await entry.locator(name).boundingBox())?.height ?? 0;
    expect(await heightOf('.actions')).toBeGreaterThanOrEqual(await heightOf('.actions .why'));
  });

  itLong('on a touch screen the button that copies code lies over none of it', async () => {
    await post('code-touched', 'show code');
    const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
    const page = await stage.look('#/c/code-touched', phone);
    const code = page.locator('article.by-agent .code');
    const [text, button] = [code.locator('pre'), code.getByRole('button', { name: 'Copy the code' })];
    await button.waitFor();
    const { y = 0, height = 0 } = (await text.boundingBox()) ?? {};
    expect((await button.boundingBox())?.y).toBeGreaterThanOrEqual(y + height);
  });

  itLong(
    'the code that is shown beside the button is copied, also with codes of terminals around it',
    async () => {
      await post('codes', 'two codes');
      const page = await stage.look('#/c/codes', { permissions: ['clipboard-read', 'clipboard-write'] });
      const shown = page.locator('article.by-agent .code').filter({ hasText: 'echo shown' });
      await shown.hover();
      await shown.getByRole('button', { name: 'Copy the code' }).click();
      await expect.poll(() => page.evaluate('navigator.clipboard.readText()')).toBe('echo shown\n');
    },
  );
});
