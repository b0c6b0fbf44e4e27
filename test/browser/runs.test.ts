import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { on } from '../support/route-rules.ts';
import { sharedStage, textOf } from './support.ts';

const complete = (outcome: string, summary: string) => ({
  tool_calls: [{ name: 'complete_node', arguments: { outcome, summary } }],
});
const AGENTS = {
  editor: '---\nname: Eve Editor\ndescription: plans\ntools: [ask]\n---\nYou plan.',
  writer: '---\nname: Will Writer\ndescription: writes\n---\nYou write.',
  painter: '---\nname: Pia Painter\ndescription: paints\ntools: [ask]\n---\nYou paint.',
  starter: '---\nname: Sue Starter\ndescription: begins\n---\nYou begin.',
  author: '---\nname: Al Author\ndescription: writes texts\n---\nYou write texts.',
  other: '---\nname: Ole Other\ndescription: repairs\n---\nYou repair.',
  joiner: '---\nname: Jo Joiner\ndescription: joins\n---\nYou join.',
};
const WORKFLOW = `id: article
start: plan
nodes:
  plan: { agent: editor, brief: Plan it., outcomes: { planned: write, dropped: end } }
  write: { agent: writer, brief: Write it., outcomes: { written: check } }
  check: { agent: editor, brief: Check it., outcomes: { passed: end, failed: write } }
`;
const BRANCHES = `id: both
start: begin
nodes:
  begin: { agent: starter, brief: Begin it., outcomes: { begun: [text, picture], broken: repair } }
  repair: { agent: other, brief: Repair it., outcomes: { repaired: end } }
  text: { agent: author, brief: Write the text., outcomes: { written: join } }
  picture: { agent: painter, brief: Paint the picture., outcomes: { painted: join } }
  join: { agent: joiner, after: [text, picture], brief: Join both., outcomes: { joined: end } }
`;
const RULES = [
  on(
    '/break it/',
    { text: '', error: { code: 'FAKE', message: 'It is broken.' } },
    { mode: 'run', agent: 'editor' },
  ),
  { when: { mode: 'run', agent: 'starter' }, reply: complete('begun', 'A text and a picture.') },
  { when: { mode: 'run', agent: 'author' }, reply: complete('written', 'The text is short.') },
  {
    when: { mode: 'run', agent: 'painter', n: 0 },
    reply: { tool_calls: [{ name: 'ask', arguments: { question: 'Which colour?' } }] },
  },
  { when: { mode: 'run', agent: 'painter' }, reply: complete('painted', 'The picture is red.') },
  { when: { mode: 'run', agent: 'joiner' }, reply: complete('joined', 'Both fit.') },
  on('/drop it/', complete('dropped', 'Nothing is known.'), { mode: 'run', agent: 'editor' }),
  {
    when: { mode: 'run', agent: 'editor', n: 0 },
    reply: { tool_calls: [{ name: 'ask', arguments: { question: 'Which shop?' } }] },
  },
  {
    when: { mode: 'run', agent: 'editor', n: 1 },
    reply: complete('planned', 'Two days, free from 40 euros.'),
  },
  { when: { mode: 'run', agent: 'writer', n: 0 }, reply: complete('written', 'Free from 30 euros.') },
  { when: { mode: 'run', agent: 'editor', n: 2 }, reply: complete('failed', 'It is 40, not 30.') },
  { when: { mode: 'run', agent: 'writer' }, reply: complete('written', 'Free from 40 euros.') },
  { when: { mode: 'run', agent: 'editor' }, reply: complete('passed', 'The article is right.') },
  { reply: { text: 'Noted: {{last}}' } },
];

describe.skipIf(chromiumPath === null)('the runs of a conversation in Chromium', () => {
  const stage = sharedStage(
    {
      agents: AGENTS,
      settings: { defaultAgent: 'editor' },
      script: RULES,
      files: { 'workflows/article.yaml': WORKFLOW, 'workflows/both.yaml': BRANCHES },
    },
    /net::ERR_|status of 503/,
  );

  const { post } = stage;
  const nodes = (page: Page) => page.locator('.runs > .fold > summary .run-path li');
  const path = async (page: Page) =>
    (await nodes(page).allInnerTexts()).map((text) =>
      text.replace(/\s+(,)?/g, (_, comma) => comma ?? ' ').replace(/^[A-Z]{2} /, ''),
    );

  it('a person starts a workflow with the first message of a conversation', async () => {
    const page = await stage.look('#/new');
    await page.getByLabel('Workflow').selectOption('article');
    expect(await textOf(page.locator('#recipients'))).toBe(
      'Starts the workflow article: to Eve Editor at plan',
    );
    await page.getByLabel('Message').fill('drop it, please');
    await page.getByLabel('Message').press('Enter');
    await expect.poll(() => page.url()).toMatch(/#\/c\//);
    await expect.poll(() => textOf(page.locator('.runs'))).toContain('dropped');
    expect(await path(page)).toEqual(['plan, done']); // nothing follows the end
    expect(await page.getByLabel('Workflow').count()).toBe(0);
  });

  it('the keys in the fields of phase and mode choose nothing before Enter: one step is made, and it is the one that was meant', async () => {
    const page = await stage.begin('by-keys', 'hello', 'Noted: hello');
    const steps = async () => {
      const { entries } = await stage.api<{ entries: readonly Record<string, string>[] }>(
        'GET',
        'conversations/by-keys/entries',
      );
      return entries.flatMap(({ type, to, workflowId }) =>
        type === 'phase-entered' ? to : type === 'run-started' ? workflowId : [],
      );
    };
    const before = await steps();
    await page.getByTitle('Phase and mode: who answers').click();
    await page.getByRole('combobox', { name: 'Phase' }).focus();
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter'])
      await page.keyboard.press(key);
    await expect.poll(steps).toEqual([...before, 'execute']);
    await page.getByLabel('Mode').focus();
    for (const key of ['b', 'End']) {
      await page.keyboard.press(key);
      await page.waitForTimeout(150); // an answer would be there
    }
    await page.keyboard.press('Enter');
    await expect.poll(steps).toEqual([...before, 'execute', 'both']);
  });

  itLong(
    'a run is a path with its current node, in two browsers and after the daemon was killed in the middle',
    async () => {
      await post('killed', 'Write about delivery', { workflow: 'article' });
      const pages = [await stage.look('#/c/killed'), await stage.look('#/c/killed/timeline')];
      const [page, other] = pages as [Page, Page];
      for (const one of pages) {
        await expect
          .poll(() => path(one))
          .toEqual(['plan, current node', 'write, not entered', 'check, not entered']);
        expect(await one.locator('.run-path [aria-current="step"]').innerText()).toContain('plan');
      }
      await stage.kill();
      await page.getByText('Not connected. Trying again…').waitFor();
      expect(await path(page)).toContain('plan, current node');
      await stage.restart();
      await page.locator('.away').waitFor({ state: 'detached' });
      await page.getByLabel('Your answer').fill('The one here');
      await page.keyboard.press('Enter');
      for (const one of [page, other])
        await expect.poll(() => path(one)).toEqual(['plan, done', 'write ×2, done', 'check ×2, done']);
      expect(await textOf(page.locator('.run-name').first())).toBe('Run article ended: passed');
    },
  );

  it('a run is a path with its current node', async () => {
    await post('shop', 'Write about delivery', { workflow: 'article' });
    const page = await stage.look('#/c/shop');
    await expect
      .poll(() => path(page))
      .toEqual(['plan, current node', 'write, not entered', 'check, not entered']);
    expect(await page.locator('.run-path [aria-current="step"]').innerText()).toContain('plan');
    await page.getByLabel('Your answer').fill('The one here');
    await page.keyboard.press('Enter');
    await expect.poll(() => path(page)).toEqual(['plan, done', 'write ×2, done', 'check ×2, done']);
    expect(await textOf(page.locator('.run-name').first())).toBe('Run article ended: passed');
  });

  it('the steps show each outcome, the summary that was handed on, and lead to their entry', async () => {
    const page = await stage.look('#/c/shop');
    await page.locator('.runs summary').first().focus();
    await page.keyboard.press('Enter');
    const steps = page.locator('.run-steps > li');
    await expect.poll(() => steps.count()).toBe(5);
    const bands = (await page.locator('.band').allInnerTexts()).join('\n');
    expect(bands).toContain('goes to Will Writer');
    expect(bands).not.toMatch(/works on it|begins with/); // a band says what happened, not how it is
    const first = await textOf(steps.first());
    expect(first).toContain('Two days, free from 40 euros.');
    expect(await textOf(steps.first().locator('.taken'))).toContain('planned');
    expect(await textOf(steps.nth(2).locator('.taken'))).toContain('failed');
    expect(await textOf(steps.nth(4))).toContain('The article is right.');
    await steps.nth(3).getByRole('button', { name: 'write' }).click();
    await expect
      .poll(() => page.evaluate('document.activeElement.closest("article")?.innerText ?? ""'))
      .toContain('write');
  });

  it('a node whose turn failed says so', async () => {
    await post('broken', 'break it', { workflow: 'article' });
    const page = await stage.look('#/c/broken');
    const says = 'Eve Editor failed: it begins again with the next message';
    await expect.poll(() => textOf(page.locator('.run-name'))).toContain(says);
  });

  it('a node whose turn ended with a fork says so', async () => {
    await post('whole', 'drop it', { workflow: 'article' });
    type Log = { readonly entries: readonly { readonly type: string; readonly index: number }[] };
    const log = () => stage.api<Log>('GET', 'conversations/whole/entries');
    await expect.poll(async () => (await log()).entries.map(({ type }) => type)).toContain('turn-ended');
    const at = (await log()).entries.find(({ type }) => type === 'turn-started')?.index;
    await stage.api('POST', 'conversations/whole/fork', { as: 'part', at, publisher: 'alice' });
    const page = await stage.look('#/c/part');
    const says = 'Eve Editor ended with the fork: it begins again with the next message';
    await expect.poll(() => textOf(page.locator('.run-name'))).toContain(says);
    await page.locator('bdi', { hasText: 'the fork: what followed is in the other conversation' }).waitFor();
  });

  itLong('an earlier run stays readable below the newest one', async () => {
    await post('shop', 'drop it', { workflow: 'article' });
    const page = await stage.look('#/c/shop');
    await expect.poll(() => textOf(page.locator('.run-name').first())).toBe('Run article ended: dropped');
    await page.locator('.runs summary').first().click();
    await page.getByRole('region', { name: 'Earlier runs' }).locator('summary').click();
    await page.getByText('The article is right.').last().waitFor();
  });

  it('nodes side by side are branches in the path, and a band says which one waits for the others', async () => {
    await post('both', 'Start', { workflow: 'both' });
    const page = await stage.look('#/c/both');
    const picture = 'picture, side by side with text';
    await expect
      .poll(() => path(page))
      .toEqual(['begin, done', 'text, done', `${picture}, current node`, 'join, not entered']);
    await page.getByText('text is done and waits for the other branches').waitFor();
    await page.locator('.runs summary').first().click();
    expect(await textOf(page.locator('.run-steps > .current'))).toMatch(/Pia Painter\s+waits for an answer/);
    await page.getByLabel('Your answer').fill('Red');
    await page.keyboard.press('Enter');
    await expect
      .poll(() => path(page))
      .toEqual(['begin, done', 'text, done', `${picture}, done`, 'join, done']);
    const steps = await textOf(page.locator('.run-steps'));
    for (const summary of ['The text is short.', 'The picture is red.', 'Both fit.'])
      expect(steps).toContain(summary);
  });

  it('a run that waits for its first message is in the inbox, counted, and named with the agent that waits', async () => {
    await post('later', 'begin', { includeInContext: false });
    await stage.api('POST', 'conversations/later/mode', {
      mode: 'run',
      workflow: 'both',
      publisher: 'alice',
    });
    const page = await stage.look('#/inbox');
    const item = page.getByRole('article', { name: 'A run waits for a message: Sue Starter in begin' });
    await item.click();
    expect(await textOf(item.locator('.summary'))).toBe('Workflow both');
    expect(await textOf(item.locator('.detail'))).toContain(
      'Workflow both. Open the conversation to answer.',
    );
    await expect.poll(() => textOf(item.locator('.detail .prose'))).toMatch(/^alice:\s+begin$/);
    await item.locator('a.opens').click();
    await expect.poll(() => page.locator('#composer:focus').inputValue()).toBe('@starter ');
    await page.getByText('goes to Sue Starter with the next message').waitFor();
    const signs = `[...document.querySelectorAll('.run-path li')]
      .map((one) => getComputedStyle(one, '::after').content.replace(/["/ ]/g, ''))`;
    expect(await page.evaluate(signs)).toEqual(['→(', '+', ')→', '|', 'none']);
    expect(await path(page)).toContain('repair, another way, not entered');
    await page.evaluate("location.hash = '#/new'");
    expect(await textOf(page.locator('.now').first())).toContain('A run waits for a message');
    await page.evaluate("location.hash = '#/system'");
    await page.locator('.member', { hasText: 'Sue Starter' }).locator('summary').click();
    await page.locator('.member').getByRole('link', { name: 'begin' }).click();
    await expect.poll(() => page.url()).toMatch(/#\/c\/later$/);
    await stage.api('POST', 'conversations/later/label', { archived: true, publisher: 'alice' });
    await page.evaluate("location.hash = '#/inbox'");
    await page.getByRole('heading', { name: 'begin (archived)' }).waitFor();
  });

  itLong('a conversation without a run has no path', async () => {
    const page = await stage.begin('plain', 'Hello');
    await page.getByText('Noted: Hello').first().waitFor();
    expect(await page.locator('.runs').count()).toBe(0);
  });
});
