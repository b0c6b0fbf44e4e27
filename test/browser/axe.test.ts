import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { on } from '../support/route-rules.ts';
import { hasLongTests } from '../support/runs.ts';
import { PNG } from '../support/uploaded-files.ts';
import { sharedStage } from './support.ts';
import { SMALL_WORKFLOW, RULES as TEAM_RULES } from './team.ts';

const require = createRequire(import.meta.url);
const RULES = [
  on('/^fail/', { text: '', error: { code: 'FAKE', message: 'It is broken.' } }),
  {
    when: { mode: 'run', agent: 'lead' },
    reply: { tool_calls: [{ name: 'complete_node', arguments: { outcome: 'planned', summary: 'A plan.' } }] },
  },
  ...TEAM_RULES,
];
const STANDARD = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** Accessibility by axe, WCAG 2.2 AA. */
describe.skipIf(chromiumPath === null)('axe finds nothing in the console', () => {
  let axe: string;
  const stage = sharedStage(async () => {
    axe = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8');
    return {
      script: RULES,
      files: SMALL_WORKFLOW,
      settings: {
        approvals: { ownRequests: true },
        tools: { mcpServers: { broken: { command: 'there-is-no-such-program' } } },
      },
    };
  });
  beforeAll(async () => {
    for (const [conversation, content] of [
      ['approval', 'write it'],
      ['question', 'ask me'],
      ['failed', 'fail now'],
      ['calm', 'Hello there'],
      ['mixed', 'show code'],
      ['mixed', 'delegate it'],
      ['mixed', 'hand it over'],
      ['stopped', 'Hello'],
    ])
      await stage.api('POST', `conversations/${conversation}/messages`, { content, publisher: 'alice' });
    await stage.api('POST', 'conversations/stopped/stop', { publisher: 'alice' });
    const run = { content: 'Build it', publisher: 'alice', workflow: 'small' };
    await stage.api('POST', 'conversations/run/messages', run);
  });

  /** On a desktop, in a very wide window too. The fast tests look at the part alone that is new in a page. */
  const violations = async (page: Page, part?: string): Promise<string[]> => {
    const size = page.viewportSize();
    if (!hasLongTests) return violationsHere(page, part);
    if (size === null || size.width < SIZES.desktop.width) return violationsHere(page);
    await page.setViewportSize(WIDE);
    const wide = await violationsHere(page);
    await page.setViewportSize(size);
    return [...wide, ...(await violationsHere(page))];
  };
  /** Blocks of a thread get their places once they are measured, which a new width begins again. */
  const IS_STILL = `new Promise((resolve) => {
    const places = () => [...document.querySelectorAll('.block')].map((one) => one.getBoundingClientRect().top).join();
    const look = (before) => setTimeout(() => (places() === before ? resolve() : look(places())), 50);
    look(places());
  })`;
  const violationsHere = async (page: Page, part?: string): Promise<string[]> => {
    await page.evaluate(IS_STILL);
    if (await page.evaluate("!('axe' in window)")) await page.evaluate(axe);
    return page.evaluate<string[]>(`axe
      .run(${part ? JSON.stringify(part) : 'document'}, { runOnly: ${JSON.stringify(STANDARD)}, resultTypes: ['violations'] })
      .then(({ violations }) => violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => id + ': ' + html.slice(0, 200) + ' ' + failureSummary)))`);
  };

  const SIZES = { desktop: { width: 1_280, height: 820 }, phone: { width: 320, height: 640 } };
  const WIDE = { width: 2_560, height: 1_440 };
  const LOOKS = (['light', 'dark'] as const).flatMap((colorScheme) =>
    (['desktop', 'phone'] as const).map((size) => ({ colorScheme, size, viewport: SIZES[size] })),
  );
  // Each state is shown in one of them, and in all of them with the long tests.
  const ON_DESKTOP = hasLongTests ? LOOKS : LOOKS.slice(0, 1);
  const ON_PHONE = hasLongTests ? LOOKS : LOOKS.slice(-1);

  it.each(ON_DESKTOP)('on the first page, $colorScheme on a $size', async ({ colorScheme, viewport }) => {
    const page = await stage.look('#/new', { colorScheme, viewport });
    await page.locator('.agent-card').first().waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it.each(ON_DESKTOP)(
    'in threads, their menus and panels, $colorScheme on a $size',
    async ({ colorScheme, viewport }) => {
      const page = await stage.look('#/', { colorScheme, viewport });
      for (const [conversation, sight] of [
        ['approval', '.ask-card'],
        ['question', '.question'],
        ['failed', '.note.fault'],
        ['stopped', '.chip.stopped'],
        ['mixed', '.passage.handoff'],
      ]) {
        await page.evaluate(`location.hash = '#/c/${conversation}'`);
        await page.locator(String(sight)).first().waitFor();
        for (const fold of await page.locator('.call summary').all()) await fold.click();
        await page.locator('article.message').first().focus();
        expect(await violations(page, conversation === 'approval' ? undefined : 'main')).toEqual([]);
        if (conversation === 'approval') {
          await page.getByRole('button', { name: 'Edit arguments' }).click();
          await page.getByLabel('New content').waitFor();
          expect(await violations(page, '.ask-card')).toEqual([]);
          await page.getByRole('button', { name: 'Cancel' }).press('Enter');
        }
        if (conversation !== 'mixed') continue;
        const thumb = page.getByRole('button', { name: 'Bad answer, entry 2', exact: true });
        if ((await thumb.getAttribute('aria-pressed')) === 'false') await thumb.click();
        await page.getByRole('button', { name: 'Add a note' }).click();
        await page.getByLabel('Note on entry 2').fill('Too short');
        expect(await violations(page, 'article:has([aria-label="Note on entry 2"])')).toEqual([]);
        await page.getByRole('button', { name: 'Cancel' }).click();
        for (const menu of ['[aria-label=More]', 'button.chip']) {
          await page.locator(menu).first().press('Enter'); // an open menu covers the others
          await page.locator('.menu-list:popover-open button').first().waitFor();
          expect(await violations(page, '.menu-list:popover-open')).toEqual([]);
        }
        await page.evaluate("location.hash = '#/c/mixed/why/2'");
        await page.locator('.answer-panel .account').waitFor();
        expect(await violations(page, '.answer-panel')).toEqual([]);
      }
    },
  );

  it.each(ON_PHONE)('while a text is written, $colorScheme on a $size', async ({ colorScheme, viewport }) => {
    const page = await stage.look(`#/c/live-${colorScheme}-${viewport.width}`, { colorScheme, viewport });
    await page.getByLabel('Message', { exact: true }).fill('slowly please @');
    await page.locator('.suggestions [role=option]').first().waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByLabel('Message', { exact: true }).fill('slowly please');
    await page.keyboard.press('Enter');
    await page.locator('article.draft .prose').waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it.each(ON_PHONE)('with files, $colorScheme on a $size', async ({ colorScheme, viewport }) => {
    const place = `files-${colorScheme}-${viewport.width}`;
    const page = await stage.look(`#/c/${place}`, { colorScheme, viewport });
    const files = page.getByLabel('Add files');
    const [picture, text, empty] = ['a.png', 'b.txt', 'c.txt'].map((name) => ({
      ...{ name, mimeType: name === 'a.png' ? 'image/png' : 'text/plain' },
      buffer: name === 'a.png' ? PNG : Buffer.from(name === 'b.txt' ? 'text' : ''),
    }));
    if (!picture || !text || !empty) throw new Error('three files');
    await files.setInputFiles([picture, text]);
    await expect.poll(() => page.locator('.chosen-files .uploaded').count()).toBe(2);
    await page.getByLabel('Message', { exact: true }).press('Enter');
    await page.getByRole('link', { name: /^Download/ }).waitFor();
    await files.setInputFiles(empty);
    await page.locator('.chosen-files .refused').waitFor();
    await page.route('**/api/blobs*', (route) => route.abort());
    await files.setInputFiles(text);
    await page.getByRole('progressbar').waitFor();
    expect(await violations(page)).toEqual([]);
    await page.reload();
    await page.locator('.chosen-files .lost').waitFor();
    expect(await violations(page)).toEqual([]);
    await page.locator('.thumbnail').click();
    await page.locator('.viewer img').waitFor();
    expect(await violations(page)).toEqual([]);
    await stage.endOfTest(/net::ERR_|status of 400/);
  });

  it.each(ON_DESKTOP)('in the inbox, $colorScheme on a $size', async ({ colorScheme, viewport }) => {
    const page = await stage.look('#/inbox', { colorScheme, viewport });
    await page.locator('.inbox-entry').nth(2).waitFor();
    await page.getByText('It is broken.').first().waitFor();
    await page.getByText('Which colour?').first().waitFor();
    for (const item of await page.locator('.inbox-entry').all()) {
      await page.keyboard.press('j');
      const ofRun = item.getByText('Open the conversation to answer.'); // its message is written there
      await item.locator('.detail .ask-card, .detail .failure').or(ofRun).first().waitFor();
      expect(await violations(page, '.inbox-entry .detail')).toEqual([]);
    }
    expect(await violations(page)).toEqual([]);
  });

  it.each(ON_PHONE)('in the table of turns, $colorScheme on a $size', async ({ colorScheme, viewport }) => {
    const page = await stage.look('#/turns', { colorScheme, viewport });
    await page.locator('.turn-table tbody tr').nth(4).waitFor();
    expect(await violations(page)).toEqual([]);
  });

  it.each(ON_DESKTOP)(
    'in the team and system, $colorScheme on a $size',
    async ({ colorScheme, viewport }) => {
      const page = await stage.look('#/system', { colorScheme, viewport });
      await page.locator('.health').getByText('MCP server broken').waitFor();
      await page.locator('.member summary').first().click();
      await page.getByRole('button', { name: 'Read the persona' }).click();
      await page.locator('.persona').waitFor();
      expect(await violations(page)).toEqual([]);
    },
  );

  it.each(ON_PHONE)(
    'in the runs of a conversation, $colorScheme on a $size',
    async ({ colorScheme, viewport }) => {
      const page = await stage.look('#/c/run', { colorScheme, viewport });
      await page.locator('.runs summary').first().click();
      await page.locator('.run-steps .handed-on').first().waitFor();
      expect(await violations(page)).toEqual([]);
    },
  );

  /** Buttons in sight that show no word, and say none under the pointer. */
  const untitled = (page: Page) =>
    page.evaluate<string[]>(`[...document.querySelectorAll('a, button, label.button')]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.matches('.turn-button') && one.title === '')
      .filter((one) => ![...one.querySelectorAll(':scope :not(.unseen, svg, svg *)'), one]
        .some((part) => [...part.childNodes].some((node) => node instanceof Text && node.data.trim() !== '')))
      .map(({ outerHTML }) => outerHTML.slice(0, 200))`);

  it('each button without words has a title', async () => {
    const page = await stage.look('#/', { viewport: SIZES.desktop });
    for (const [hash, sight] of [
      ['#/new', '.agent-card'],
      ['#/c/mixed', '.passage.handoff'],
      ['#/c/mixed/why/2', '.answer-panel .account'],
      ['#/c/approval', '.ask-card'],
      ['#/c/mixed/timeline', '.timeline svg'],
      ['#/inbox', '.inbox-entry'],
      ['#/system', '.member'],
      ['#/turns', '.turn-table a'],
    ] as const) {
      await page.evaluate(`location.hash = '${hash}'`);
      await page.locator(sight).first().waitFor();
      await page
        .locator('article.message')
        .first()
        .focus({ timeout: 1_000 })
        .catch(() => {});
      expect(await untitled(page), hash).toEqual([]);
    }
    await page.setViewportSize(SIZES.phone);
    expect(await untitled(page)).toEqual([]);
  });

  it.each(ON_DESKTOP)(
    'in the list and its dialog, $colorScheme on a $size',
    async ({ colorScheme, viewport }) => {
      const page = await stage.look('', { colorScheme, viewport });
      await page.locator('.row').nth(3).waitFor();
      await page.getByRole('button', { name: 'Filter' }).click();
      await page.getByLabel('Show').selectOption('Waiting');
      await page.getByRole('button', { name: 'Show all' }).waitFor();
      expect(await violations(page)).toEqual([]);
      await page.getByLabel('Name of the filter').fill('What waits for me');
      await page.keyboard.press('Enter');
      await page.locator('.saved-filter').waitFor();
      expect(await violations(page, '.sidebar')).toEqual([]);
      await page.keyboard.press('Control+k');
      await page.keyboard.type('>');
      await page.getByRole('dialog', { name: 'Actions and keys' }).waitFor();
      expect(await violations(page, 'dialog[open]')).toEqual([]);
      await page.keyboard.press('Escape');
      await page.locator('.row').first().focus();
      await page.keyboard.press('m');
      await page.getByLabel('Title').waitFor();
      expect(await violations(page, 'dialog[open]')).toEqual([]);
    },
  );
});
