import { mkdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { message, openItem, sharedStage } from './support.ts';
import { AGENTS, RULES, SMALL_WORKFLOW } from './team.ts';

/** Pictures of the states of the console, to look at: `<temporary folder>/parley-gallery/<look>-<state>.png`. */
const FOLDER = join(tmpdir(), 'parley-gallery');

const LOOKS: Readonly<Record<string, BrowserContextOptions>> = {
  light: {},
  dark: { colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true },
  narrow: { viewport: { width: 320, height: 640 } },
  'zoom 200 %': { viewport: { width: 640, height: 410 } }, // of 1,280 × 820
  'forced colours': { forcedColors: 'active' },
};

/** By name: the address, and what it waits for. */
const STATES: readonly (readonly [state: string, hash: string, (page: Page) => Promise<unknown>])[] = [
  ['start', '#/new', (page) => page.locator('.composer').waitFor()],
  ['inbox', '#/inbox', (page) => page.locator('.inbox-entry').nth(2).waitFor()],
  ['inbox-detail', '#/inbox', async (page) => (await openItem(page, 'overwrite')).locator('.diff').waitFor()],
  ['system', '#/system', (page) => page.locator('.member').first().waitFor()],
  ['turns', '#/turns', (page) => page.locator('.turn-table tbody tr').nth(4).waitFor()],
  ['approval', '#/c/over', (page) => page.locator('.ask-card .diff').waitFor()],
  ['question', '#/c/asked', (page) => page.locator('.ask-card.question').waitFor()],
  ['failure', '#/c/failed', (page) => page.getByText('It is broken.').first().waitFor()],
  ['thread', '#/c/mixed', (page) => message(page, 'Built.').first().waitFor()],
  ['timeline', '#/c/mixed/timeline', (page) => page.locator('.timeline svg').first().waitFor()],
  ['why', '#/c/calm/why/2', (page) => page.locator('.answer-panel .account').waitFor()],
  [
    'feedback',
    '#/c/calm',
    async (page) => {
      await page.getByRole('button', { name: 'Add a note' }).click();
      await page.getByLabel('Note on entry 2').fill('It does not say what it noted.');
    },
  ],
  ['running', '#/c/runs', (page) => page.locator('article.draft .prose').waitFor()],
  ['edit-and-run', '#/c/asked-to-write', editArguments],
  ['commands', '#/c/calm', openCommands],
  ['run', '#/c/run', (page) => page.locator('.runs summary').first().click()],
  ['long-call', '#/c/long', (page) => page.locator('.ask-card').waitFor()],
  ['saved-filters', '#/', saveFilter],
  ['floor', '#/c/calm', (page) => page.getByTitle('Phase and mode: who answers').click()],
];

async function editArguments(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Edit arguments' }).click();
  await page.getByLabel('New content').waitFor();
}

async function saveFilter(page: Page): Promise<void> {
  const back = page.getByRole('link', { name: 'Back to the list' });
  if (await back.isVisible()) await back.click();
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.getByLabel('Show').selectOption('Waiting');
  await page.getByLabel('Name of the filter').fill('What waits for me');
  await page.keyboard.press('Enter');
  await page.locator('.saved-filter').waitFor();
}

async function openCommands(page: Page): Promise<void> {
  await page.getByRole('heading', { name: 'Hello there' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('>');
  await page.locator('.palette [role=option]').first().waitFor();
}

describe.skipIf(chromiumPath === null)('a gallery of the console', () => {
  const overwrite = { name: 'fs_write', arguments: { path: '@project/plan.md', content: 'one\n2\nthree\n' } };
  const question = { name: 'ask', arguments: { question: 'Which plan?' } };
  const long = { name: 'shell', arguments: { command: `${'echo step\n'.repeat(60)}rm /the/end` } };
  const stage = sharedStage({
    settings: { approvals: { ownRequests: true }, tools: { project: 'project' } },
    agents: { ...AGENTS, lead: AGENTS.lead.replace('fs_read', 'fs_read, shell') },
    files: SMALL_WORKFLOW,
    script: [
      { when: { mode: 'run', agent: 'lead' }, reply: { tool_calls: [question] } },
      { when: { last: '/^long/' }, reply: { tool_calls: [long] } },
      { when: { last: '/^overwrite/' }, reply: { text: 'I update the plan.', tool_calls: [overwrite] } },
      { when: { last: '/^go on/' }, reply: { text: 'word '.repeat(9_000), delayMs: 100 } },
      { when: { last: '/^fail/' }, reply: { text: '', error: { code: 'FAKE', message: 'It is broken.' } } },
      ...RULES,
    ],
    before: async ({ root }) => {
      await mkdir(join(root, 'project'));
      await writeFile(join(root, 'project/plan.md'), 'one\ntwo\nthree\n');
    },
  });
  beforeAll(async () => {
    await mkdir(FOLDER, { recursive: true });
    for (const [conversation, content] of [
      ['over', 'overwrite the plan'],
      ['asked', 'ask me'],
      ['failed', 'fail now'],
      ['calm', 'Hello there'],
      ['mixed', 'show code'],
      ['mixed', 'hand it over'],
      ['asked-to-write', 'write it'],
      ['runs', 'go on for long'],
      ['long', 'long'],
    ] as const)
      await stage.post(conversation, content);
    await stage.post('run', 'Build it', { workflow: 'small' });
    await stage.look('#/c/calm').then((page) => message(page, 'Noted').waitFor());
    for (const more of [{ value: 'down' }, { value: 'up', note: 'Short and right.', publisher: 'alice' }])
      await stage.api('POST', 'conversations/calm/feedback', { index: 2, publisher: 'console', ...more });
  });

  it.each(Object.keys(LOOKS))('nothing is wider than the window, in the look %s', async (look) => {
    const page = await stage.look('#/', LOOKS[look]);
    const { width = 0 } = page.viewportSize() ?? {};
    for (const [state, hash, isShown] of STATES) {
      await page.mouse.move(0, 0); // a click where another button was is stray
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await isShown(page);
      await page.screenshot({ path: join(FOLDER, `${look}-${state}.png`) });
      const inside = `Math.max(...[...document.querySelectorAll('html, .page, .head, .people, .composer, .menu-list')]
        .map((one) => Math.max(one.scrollWidth, one.getBoundingClientRect().right)))`;
      expect(Math.round(await page.evaluate<number>(inside)), state).toBeLessThanOrEqual(width);
      const left = `Math.min(0, ...[...document.querySelectorAll('.menu-list:popover-open')].map((one) => one.getBoundingClientRect().left))`;
      expect(await page.evaluate(left), state).toBe(0);
      await page.keyboard.press('Escape'); // what is open
    }
  });
});
