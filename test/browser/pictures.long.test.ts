import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { on } from '../support/route-rules.ts';
import { message, sharedStage } from './support.ts';

/** The pictures of the documents: `PARLEY_LONG=1 PARLEY_WRITE_PICTURES=1 npx vitest run --project browser test/browser/pictures.long.test.ts` */

const agent = (name: string, more: string) => `---\nname: ${name}\n${more}---\nYou work on it.`;
const AGENTS = {
  planner: agent('Planner', 'description: plans and decides\ntools: [delegate, handoff, ask, fs_write]\n'),
  developer: agent('Developer', 'description: builds\nphases: [execute]\ntools: [fs_write]\n'),
  tester: agent('Tester', 'description: breaks things on purpose\n'),
};
const call = (name: string, given: object) => ({ name, arguments: given });
const SCRIPT = [
  on(
    '/^Build a link/',
    {
      text: 'I ask both before I plan.',
      tool_calls: [
        call('delegate', {
          to: 'developer',
          request: 'What does a link shortener need? Answer in two sentences.',
        }),
        call('delegate', { to: 'tester', request: 'What must never break? Answer in one sentence.' }),
      ],
    },
    { agent: 'planner' },
  ),
  on(
    '/link shortener need/',
    { text: 'A table with two columns and three routes. A day of work.', delayMs: 60 },
    { agent: 'developer' },
  ),
  on('/never break/', { text: 'A link that once worked.', delayMs: 60 }, { agent: 'tester' }),
  {
    when: { agent: 'planner', tool: 'delegate' },
    reply: {
      text: 'The plan is clear: a table, three routes, and a test that moves a target.',
      tool_calls: [
        call('handoff', {
          to: 'developer',
          summary: 'Build the table and the three routes. A link must survive a move of its target.',
        }),
      ],
    },
  },
  on(
    '/survive a move/',
    {
      text: 'The table and the routes are there:\n\n```sql\ncreate table links (slug text primary key, target text not null);\n```\n\nNext comes the test that moves a target.',
      delayMs: 20,
    },
    { agent: 'developer' },
  ),
  on('/release/', {
    tool_calls: [
      call('ask', { question: 'Which day is best for the release?', options: ['Tuesday', 'Thursday'] }),
    ],
  }),
  on('/notes/', {
    text: 'I add the decision.',
    tool_calls: [
      call('fs_write', { path: '@project/notes.md', content: '# Notes\n\nLinks never expire.\n' }),
    ],
  }),
  on('/price/', { text: '', error: { code: 'UNREACHABLE', message: 'The provider does not answer.' } }),
  on('/What can/', { text: 'I plan, Developer builds, and Tester breaks things on purpose.' }),
  { reply: { text: 'It is noted: {{last}}' } },
];
const POSTS = [
  ['links', 'Build a link shortener'],
  ['team', 'What can each of you do?'],
  ['release', 'Choose a day for the release'],
  ['notes', 'Edit the notes'],
  ['price', 'Check the price of the domain'],
] as const;

interface Picture {
  readonly name: string;
  readonly hash: string;
  readonly size: readonly [width: number, height: number];
  readonly colorScheme?: 'dark';
}
const PICTURES: readonly Picture[] = [
  { name: 'thread', hash: '#/c/links', size: [1_100, 680] },
  { name: 'dark', hash: '#/c/notes', size: [1_100, 680], colorScheme: 'dark' },
  { name: 'narrow', hash: '#/c/notes', size: [320, 680] },
  { name: 'system', hash: '#/system', size: [1_440, 900] },
  { name: 'timeline', hash: '#/c/links/timeline', size: [1_100, 600] },
  { name: 'why', hash: '#/c/links/why/2', size: [1_100, 680] },
];

const callIsShown = (page: Page) => page.locator('.ask-card .diff').waitFor();
const isShown: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  thread: (page) => message(page, 'moves a target').last().waitFor(),
  timeline: (page) => page.locator('.timeline svg').first().waitFor(),
  why: (page) => page.locator('.answer-panel .account').waitFor(),
  system: (page) => page.locator('.member').nth(2).waitFor(),
};

describe.skipIf(chromiumPath === null || !process.env.PARLEY_WRITE_PICTURES)(
  'the pictures of the documents',
  () => {
    const stage = sharedStage({
      agents: AGENTS,
      script: SCRIPT,
      before: async ({ root }) => {
        await mkdir(join(root, 'project'));
        await writeFile(join(root, 'project/notes.md'), '# Notes\n\nLinks expire after a year.\n');
      },
      settings: {
        approvals: { ownRequests: true },
        tools: { project: 'project' },
        models: {
          default: {
            provider: 'scripted',
            script: 'script.yaml',
            price: { inputPerMillion: 3, outputPerMillion: 15 },
          },
        },
      },
    });
    beforeAll(async () => {
      for (const [conversation, content] of POSTS.toReversed())
        await stage.api('POST', `conversations/${conversation}/messages`, {
          content,
          publisher: 'console',
          author: { name: 'Alice' },
        });
      await stage.look('#/c/links').then((page) => message(page, 'Next comes the test').waitFor());
    });

    it.each(PICTURES)('$name', async ({ name, hash, size: [width, height], ...look }) => {
      const page = await stage.look('#/', { viewport: { width, height }, ...look });
      await page.evaluate("localStorage.setItem('parley.name', 'Alice')");
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.reload();
      await (isShown[name] ?? callIsShown)(page);
      await page.evaluate(
        "for (const one of document.querySelectorAll('dd')) one.textContent = one.textContent.replace(/, \\/.*/, ', /var/lib/parley')",
      );
      const path = fileURLToPath(new URL(`../../docs/console-${name}.png`, import.meta.url));
      await page.screenshot({ path });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    });
  },
);
