import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { on } from '../support/route-rules.ts';
import { inboxItem, message, PHONE, sharedStage, textOf, textsCut, write } from './support.ts';
import { AGENTS, RULES, SMALL_WORKFLOW } from './team.ts';

const ZOOMED = { viewport: { width: 640, height: 410 } }; // 1,280 × 820 pixels at 200 %
const calls = (name: string, given: object) => ({ tool_calls: [{ name, arguments: given }] });

describe.skipIf(chromiumPath === null)('small windows and fingers', () => {
  const stage = sharedStage({
    agents: { ...AGENTS, lead: AGENTS.lead.replace('fs_read', 'fs_read, shell') },
    settings: { approvals: { ownRequests: true }, tools: { project: 'project' } },
    files: SMALL_WORKFLOW,
    script: [
      { when: { mode: 'run', agent: 'lead' }, reply: calls('ask', { question: 'Which plan?' }) },
      on('/^long/', calls('shell', { command: `${'echo step\n'.repeat(60)}rm /the/end` })),
      on('/^overwrite/', calls('fs_write', { path: '@project/plan.md', content: 'two\n' })),
      on('/^sixty/', {
        tool_calls: ['first', 'second', 'third'].map((name) => ({
          name: 'fs_write',
          arguments: { path: `@project/${name}.md`, content: 'a line\n'.repeat(60) },
        })),
      }),
      on('/^fail/', { text: '', error: { code: 'FAKE', message: 'It is broken.' } }),
      ...RULES,
    ],
    before: async ({ root }) => {
      await mkdir(join(root, 'project'));
      await writeFile(join(root, 'project/plan.md'), 'one\n');
    },
  });
  const { post } = stage;
  beforeAll(async () => {
    for (const [conversation, content] of [
      ['calm', 'Hello there'],
      ['touched', 'hello'],
      ['over', 'overwrite the plan'],
      ['over-zoomed', 'overwrite the plan'],
      ['long', 'long'],
      ['asked', 'ask me'],
      ['failed', 'fail now'],
    ] as const)
      await post(conversation, content);
    await post('run', 'Build it', { workflow: 'small' });
  });

  const isCut = (place: Locator) => place.evaluate((one) => one.scrollWidth > one.clientWidth);
  /** What the window shows of it, in pixels of its height. */
  const shownOf = async (place: Locator, page: Page) => {
    const { y = 0, height = 0 } = (await place.boundingBox()) ?? {};
    return Math.min(y + height, page.viewportSize()?.height ?? 0) - Math.max(0, y);
  };

  itLong(
    'at 320 pixels, a heading is whole and the note on an answer has the width of its message',
    async () => {
      const page = await stage.look('#/system', PHONE);
      await page.locator('.member').first().waitFor();
      expect(await isCut(page.getByRole('heading', { name: 'Team and system' }))).toBe(false);
      await page.evaluate("location.hash = '#/c/calm'");
      await message(page, 'Noted').tap();
      await page.getByRole('button', { name: 'Bad answer, entry 2' }).tap();
      await page.getByRole('button', { name: 'Add a note' }).tap();
      const field = page.getByLabel('Note on entry 2');
      await field.fill('It does not say what it noted.');
      expect(await isCut(field)).toBe(false);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
    },
  );

  itLong(
    'a touched message keeps its text in its place, and the menu of a participant is below its name',
    async () => {
      const page = await stage.look('#/c/calm', { ...PHONE, viewport: { width: 390, height: 844 } });
      const prose = message(page, 'Noted').locator('.prose');
      await prose.waitFor();
      const before = await prose.boundingBox();
      await prose.tap();
      await page.getByRole('button', { name: 'Copy entry 2' }).waitFor();
      expect(await prose.boundingBox()).toEqual(before);
      const above = await message(page, 'hello').first().locator('.prose').boundingBox();
      const actions = await page.locator('article:focus .actions').boundingBox();
      expect(actions?.y).toBeGreaterThanOrEqual((above?.y ?? 0) + (above?.height ?? Infinity)); // it stays readable
      expect((actions?.y ?? 0) + (actions?.height ?? 0)).toBeLessThanOrEqual((before?.y ?? 0) + 4);
      const chip = page.locator('.people button', { hasText: 'Lena Lead' });
      await chip.tap();
      const menu = page.locator('.menu-list:popover-open');
      await menu.waitFor();
      const [face, list] = [await chip.boundingBox(), await menu.boundingBox()];
      expect(list?.y).toBeGreaterThanOrEqual((face?.y ?? 0) + (face?.height ?? 0));
      expect(Math.abs((list?.x ?? 0) - (face?.x ?? 0))).toBeLessThan(40);
    },
  );

  itLong('beside the answers of a call, the way to the newest message covers none of its text', async () => {
    const page = await stage.look('#/c/long', { viewport: { width: 1280, height: 820 } });
    await page.getByRole('button', { name: 'Read on to answer' }).click();
    await page.locator('.ask-card.seen').waitFor();
    await page.mouse.move(300, 300); // a box in the card would scroll
    await page.mouse.wheel(0, -3000);
    await page.getByRole('button', { name: 'Newest' }).waitFor();
    const button = await page.getByRole('button', { name: 'Newest' }).boundingBox();
    const card = await page.locator('.ask-card').boundingBox();
    expect(button?.x).toBeGreaterThanOrEqual((card?.x ?? 0) + (card?.width ?? 0));
  });

  itLong(
    'the number of an entry in the explanation has no gap around it, although fingers hit it',
    async () => {
      await post('counted', 'hello');
      const page = await stage.look('#/c/counted', PHONE);
      await write(page, 'once more');
      const why = message(page, 'Noted: once more').locator('a.why');
      await page.goto(`${stage.url}/${await why.getAttribute('href')}`);
      const link = page.locator('p:has-text("Same definition") .entry-links');
      expect((await link.locator('button').boundingBox())?.width).toBeGreaterThan(43.5);
      const { width = 99 } = (await link.boundingBox()) ?? {};
      expect(width).toBeLessThan(20);
    },
  );

  it('on a phone, the state of a run is whole, and no page has a text that is cut without a sign', async () => {
    await post('halted', 'Build it', { workflow: 'small' });
    const page = await stage.look('#/c/halted', PHONE);
    await page.getByLabel('Your answer').waitFor();
    for (const verb of ['stop', 'resume'])
      await stage.api('POST', `conversations/halted/${verb}`, { publisher: 'alice' });
    await page.locator('.run-name', { hasText: 'begins again with the next message' }).waitFor();
    for (const width of [390, 320]) {
      await page.setViewportSize({ width, height: 640 });
      expect(await textsCut(page)).toEqual([]);
    }
    for (const [hash, act] of PAGES) {
      await page.evaluate(`location.hash = '${hash}'`);
      await act(page);
      expect(await textsCut(page), hash).toEqual([]);
    }
  });

  itLong('an unfolded run leaves the thread in sight', async () => {
    const page = await stage.look('#/c/run', PHONE);
    await page.locator('.runs summary').first().tap();
    await page.locator('.run-steps li').first().waitFor();
    expect(await textOf(page.locator('.run-steps'))).toContain('waits for an answer');
    expect(await shownOf(page.locator('.thread'), page)).toBeGreaterThan(120);
    expect(await shownOf(page.getByLabel('Message'), page)).toBeGreaterThan(30);
  });

  it('the answers to a call are in sight at once, but not before the end of what would run was', async () => {
    const page = await stage.look('#/c/over', PHONE);
    const card = page.locator('.ask-card');
    await card.locator('.diff .added').waitFor();
    const reached = () =>
      page.evaluate<boolean>(`(() => {
        const approve = document.querySelector('.ask-card .primary');
        const { left, top, height } = approve.getBoundingClientRect();
        return document.elementFromPoint(left + 20, top + height / 2) === approve;
      })()`);
    await expect.poll(reached).toBe(true);
    const left = await page.evaluate<number>(`(() => {
      const [field, pen] = [document.querySelector('.ask-card input'), document.createElement('canvas').getContext('2d')];
      const { fontSize, fontFamily, paddingLeft } = getComputedStyle(field);
      pen.font = fontSize + ' ' + fontFamily;
      return field.clientWidth - 2 * Number.parseFloat(paddingLeft) - pen.measureText(field.placeholder).width;
    })()`);
    expect(left).toBeGreaterThanOrEqual(0); // its placeholder is whole
    await page.evaluate("location.hash = '#/c/long'");
    await card.getByText('rm /the/end').first().waitFor();
    expect(await reached()).toBe(false);
    await page.getByRole('button', { name: 'Read on to answer' }).tap();
    await expect.poll(reached).toBe(true);
    expect(await shownOf(card.locator('.call-end'), page)).toBeGreaterThan(40);
    await page.locator('.ask-card.seen').waitFor();
    expect(await page.getByRole('button', { name: 'Read on to answer' }).count()).toBe(0);
    const covers = await textOf(card.getByText('also approves later calls of shell'));
    expect(covers.length).toBeLessThan(300); // the command is above, in full
  });

  itLong('the first tap after a message was sent hits the button that it was meant for', async () => {
    await stage.post('tapped', 'hello');
    const page = await stage.open('tapped', 'Noted: hello', PHONE);
    await write(page, 'long please');
    const on = page.getByRole('button', { name: 'Read on to answer' });
    await on.waitFor();
    expect(await page.evaluate('document.activeElement.id')).toBe('composer');
    const { x, y, width, height } = (await on.boundingBox()) ?? expect.unreachable('it has no place');
    await page.touchscreen.tap(x + width / 2, y + height / 2);
    await page.locator('.ask-card.seen').waitFor();
  });

  itLong(
    'a long call that comes after a touched message is shown from its beginning, and a tap on an answer leads to its end first',
    async () => {
      const page = await stage.look('#/c/touched', PHONE);
      await message(page, 'Noted: hello').locator('.prose').tap();
      await write(page, 'long please');
      const card = page.locator('.ask-card');
      await card.getByText('rm /the/end').first().waitFor();
      const top = () => card.locator('.whole-call').evaluate((one) => one.getBoundingClientRect().top);
      await expect.poll(top).toBeGreaterThan(0);
      await page.getByRole('button', { name: 'Read on to answer' }).waitFor();
      for (const event of ['pointerdown', 'click'])
        await page.getByRole('button', { name: 'Approve' }).dispatchEvent(event); // a tap would scroll first
      await page.locator('.ask-card.seen').waitFor();
      expect(await shownOf(card.locator('.call-end'), page)).toBeGreaterThan(40);
      expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(1);
    },
  );

  it('a call that was higher than the screen and is answered stays in sight, with what came after it', async () => {
    await post('amid', 'long');
    const asked = () => stage.api<{ approvals: object[] }>('GET', 'conversations/amid/approvals');
    await expect.poll(async () => (await asked()).approvals.length).toBe(1); // else the turn reads what follows
    for (const at of ['one', 'two', 'three']) await post('amid', `${at} `.repeat(80));
    const page = await stage.look('#/c/amid', PHONE);
    await page.getByRole('button', { name: '1 approval needed' }).tap();
    const card = page.locator('.ask-card');
    await card.getByText('rm /the/end').first().waitFor();
    await page.getByRole('button', { name: 'Read on to answer' }).tap();
    await page.locator('.ask-card.seen').waitFor();
    await page.locator('.thread').evaluate((thread) => (thread.scrollTop -= 400)); // its answers stick
    await page.waitForTimeout(700);
    await page.getByRole('button', { name: 'Deny' }).tap();
    await expect.poll(() => shownOf(page.getByText('Denied by console'), page)).toBeGreaterThan(10);
    await page.waitForTimeout(500);
    expect(await shownOf(page.getByText('Denied by console'), page)).toBeGreaterThan(10);
  });

  itLong('in the inbox too, the way to the answers of a long call is in sight', async () => {
    const page = await stage.look('#/inbox', PHONE);
    await inboxItem(page, 'long').locator('.inbox-line').tap();
    const on = page.getByRole('button', { name: 'Read on to answer' });
    await on.waitFor();
    expect(await shownOf(on, page)).toBeGreaterThan(40);
    await on.tap();
    await on.waitFor({ state: 'detached' });
    await expect.poll(() => shownOf(page.getByRole('button', { name: 'Approve' }), page)).toBeGreaterThan(40);
  });

  it('after an answer in the inbox, the next call is shown from its beginning and must be read as well', async () => {
    await post('sixty', 'sixty lines');
    const item = (name: string) => inboxItem(page, 'sixty').filter({ hasText: `@project/${name}.md` });
    const page = await stage.look('#/inbox', { ...PHONE, viewport: { width: 390, height: 420 } }); // the rows alone are higher
    await item('third').waitFor();
    await item('first').locator('.inbox-line').tap();
    const seen = page.locator('.ask-card.seen');
    const readOn = page.getByRole('button', { name: 'Read on to answer' });
    await readOn.tap();
    await seen.waitFor();
    await page.getByRole('button', { name: 'Deny' }).tap();
    await item('first').waitFor({ state: 'detached' });
    const second = item('second');
    await readOn.waitFor();
    const { y: head = 0, height = 0 } = (await page.locator('.head').boundingBox()) ?? {};
    for (const part of ['.inbox-line', '.ask-card > p >> nth=0'])
      expect((await second.locator(part).boundingBox())?.y).toBeGreaterThanOrEqual(head + height);
    await page.waitForTimeout(500);
    expect(await seen.count()).toBe(0);
    await page.evaluate("location.hash = '#/c/sixty'");
    const last = page.locator('.ask-card').nth(1);
    await last.locator('.call-end').evaluate((end) => end.scrollIntoView({ block: 'center' }));
    await page.waitForTimeout(500);
    expect(await last.evaluate((card) => card.matches('.seen'))).toBe(false); // its beginning was not in sight
    for (const part of ['p >> nth=0', '.call-end']) {
      await last.getByRole('button', { name: 'Read on to answer' }).dispatchEvent('click'); // a tap would scroll first
      await expect.poll(() => shownOf(last.locator(part), page)).toBeGreaterThan(0);
    }
    await seen.waitFor();
    await stage.api('POST', 'conversations/sixty/stop', { publisher: 'alice' });
  });

  it('on a phone no field has letters so small that Safari zooms to it, and the timeline names no keys', async () => {
    const page = await stage.look('#/c/long', PHONE);
    await page.getByRole('button', { name: 'Edit arguments' }).click();
    const sizes = await page.evaluate<
      number[]
    >(`[...document.querySelectorAll('input:not([type=checkbox]), select, textarea')]
      .filter((one) => one.checkVisibility())
      .map((one) => Number.parseFloat(getComputedStyle(one).fontSize))`);
    expect(sizes.length).toBeGreaterThan(3);
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(16);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('link', { name: 'Timeline' }).click();
    await page.getByText('A click opens the entry of a bar').waitFor();
    expect(await page.getByText('Keys in the picture').isVisible()).toBe(false);
  });

  itLong('at a zoom of 200 %, the message field stays while the arguments of a call are edited', async () => {
    const page = await stage.look('#/c/over-zoomed', ZOOMED);
    await page.getByRole('button', { name: 'Edit arguments' }).click();
    await page.getByLabel('New content').waitFor();
    expect(await shownOf(page.getByLabel('Message'), page)).toBeGreaterThan(30);
    expect(
      await shownOf(page.getByRole('button', { name: 'Run with these arguments' }), page),
    ).toBeGreaterThan(30);
    expect(await shownOf(page.locator('.thread'), page)).toBeGreaterThan(150);
  });

  /** Controls in sight that are smaller than 44 pixels; links in texts of others have the size of their words. */
  const tooSmall = (page: Page) =>
    page.evaluate<
      string[]
    >(`[...document.querySelectorAll('a, button, summary, input, select, textarea, [role=option]')]
      .filter((one) => one.checkVisibility({ visibilityProperty: true }) && !one.closest('.prose') && !one.matches('.unseen, .skip'))
      .map((one) => [one, (one.type === 'checkbox' ? one.closest('label') : one).getBoundingClientRect()])
      .filter(([, { bottom, top }]) => bottom > 0 && top < innerHeight)
      .filter(([, { width, height }]) => width < 43.5 || height < 43.5)
      .map(([one, { width, height }]) => one.outerHTML.slice(0, 120) + width + ' × ' + height)`);

  const PAGES: readonly [hash: string, act: (page: Page) => Promise<unknown>][] = [
    ['#/', (page) => page.getByRole('button', { name: 'Filter' }).tap()],
    ['#/new', (page) => page.getByRole('link', { name: 'Answer in the inbox' }).waitFor()],
    ['#/inbox', (page) => inboxItem(page, 'ask me').locator('.inbox-line').tap()],
    ['#/turns', (page) => page.locator('.turn-table a').first().waitFor()],
    ['#/system', (page) => page.locator('.member').first().waitFor()],
    ['#/c/calm', (page) => message(page, 'Noted').tap()],
    ['#/c/calm/why/2', (page) => page.locator('.answer-panel .account').waitFor()],
    ['#/c/calm/timeline', (page) => page.locator('.timeline svg').first().waitFor()],
    ['#/c/asked', (page) => page.getByLabel('Message').tap()],
    ['#/c/failed', (page) => page.getByRole('button', { name: 'Try again' }).waitFor()],
    ['#/c/long', (page) => page.locator('.ask-card').waitFor()],
    ['#/c/run', (page) => page.locator('.runs summary').first().tap()],
  ];
  it('on a phone, the head of a thread has two rows, and Stop is no more than its other controls where nothing runs', async () => {
    const page = await stage.look('#/c/calm', { ...PHONE, viewport: { width: 390, height: 844 } });
    const stop = page.locator('.controls').getByRole('button', { name: 'Stop' });
    await stop.waitFor();
    const { y = 999, height = 0 } = (await page.locator('.people').boundingBox()) ?? {};
    expect(y + height).toBeLessThan(844 * 0.14);
    expect((await stop.boundingBox())?.width).toBeLessThan(48);
    const border = "getComputedStyle(document.querySelector('.controls .stop')).borderColor";
    expect(await page.evaluate(border)).toBe('rgba(0, 0, 0, 0)');
    const last = await page.locator('.people > li').last().boundingBox();
    const controls = await page.locator('.controls').boundingBox();
    expect(controls?.x).toBeGreaterThanOrEqual((last?.x ?? 999) + (last?.width ?? 0));
    expect((controls?.x ?? 0) + (controls?.width ?? 999)).toBeLessThanOrEqual(390);
    for (const name of ['Stop', 'More', 'Phase'])
      await page.locator(`.controls [title*=${name}]`).tap({ trial: true });
    await page.locator('.controls [title*=Stop]').tap();
    const resume = page.locator('.controls').getByText('Resume');
    await resume.waitFor();
    await page.waitForTimeout(550); // it takes the place of a pressed button
    await resume.tap();
    await stop.waitFor();
  });

  it('on a phone, how a message is delivered to agents at work is offered while they work, with its label', async () => {
    const page = await stage.look('#/c/calm', { ...PHONE, viewport: { width: 390, height: 844 } });
    await page.getByLabel('Message').tap();
    await page.locator('#name').waitFor();
    const delivery = page.getByLabel('While they work');
    expect(await delivery.isVisible()).toBe(false);
    await write(page, 'slowly');
    await page.locator('.field .stop').waitFor();
    await page.getByLabel('Message').tap();
    await delivery.waitFor();
    expect(await page.getByText('While they work', { exact: true }).isVisible()).toBe(true);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    await stage.api('POST', 'conversations/calm/stop', { publisher: 'alice' });
    await stage.api('POST', 'conversations/calm/resume', { publisher: 'alice' });
  });

  it('on a phone, the participants of a conversation are in one line, face beside face, and so are their words', async () => {
    await stage.api('POST', 'conversations/crowd/mode', { mode: 'agent', agent: 'lead', publisher: 'alice' });
    for (const name of ['Ann', 'Ben', 'Cleo', 'Dan'])
      await post('crowd', 'for the record', { author: { name }, includeInContext: false });
    const page = await stage.look('#/c/crowd', PHONE);
    const faces = page.locator('.people > li');
    await expect.poll(() => faces.count()).toBe(6);
    const boxes = await Promise.all((await faces.all()).map((one) => one.boundingBox()));
    const gaps = boxes
      .slice(1)
      .map((box, nth) => (box?.x ?? 0) - (boxes[nth]?.x ?? 0) - (boxes[nth]?.width ?? 0));
    expect(gaps.map(Math.round)).toEqual([0, 0, 0, 0, 0]);
    expect(new Set(boxes.map((box) => Math.round((box?.y ?? 0) + (box?.height ?? 0) / 2))).size).toBe(1);
    const floor = await page.locator('.people').getByText('has the floor').boundingBox();
    expect(floor?.height).toBeLessThan(24);
  });

  itLong('short and long titles in the table of turns begin below each other', async () => {
    const page = await stage.look('#/turns', PHONE);
    await page
      .locator('.turn-table a', { hasText: /^long$/ })
      .first()
      .waitFor();
    const begins = await page.evaluate<
      number[]
    >(`[...document.querySelectorAll('td:nth-child(3) a')].map((one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      return Math.round(range.getBoundingClientRect().left);
    })`);
    expect(begins.length).toBeGreaterThan(4);
    expect(new Set(begins).size).toBe(1);
  });

  it('fingers hit each control of each page', async () => {
    const page = await stage.look('#/', PHONE);
    for (const [hash, act] of PAGES) {
      await page.evaluate(`location.hash = '${hash}'`);
      await act(page);
      expect(await tooSmall(page), hash).toEqual([]);
    }
  });
});
