import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/conversation/index.ts';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { centreOf, clickAgain, message, sharedStage, textOf, until, write } from './support.ts';

/** By how many pixels each entry covers the next one. */
const OVERLAPS = `[...document.querySelectorAll('.place')]
  .map((place) => place.getBoundingClientRect())
  .map(({ bottom }, at, all) => Math.max(0, Math.round(bottom - (all[at + 1]?.top ?? bottom))))`;

/** What people do in the console, with a daemon in its own process. */
describe.skipIf(chromiumPath === null)('the console in Chromium', () => {
  const stage = sharedStage();

  const { post } = stage;
  const isResting = (conversation: string) => async () => {
    const { agents } = await stage.api<{ agents: Record<string, { status: string }> }>(
      'GET',
      `conversations/${conversation}`,
    );
    return Object.values(agents).every(({ status }) => status === 'idle');
  };
  const talk = async (conversation: string, content: string, more: object = {}) => {
    await post(conversation, content, more);
    await expect.poll(isResting(conversation)).toBe(true);
  };

  it('a person begins a conversation, gets an answer, and finds it in the list', async () => {
    const page = await stage.look();
    await page.getByText('No conversations yet.').waitFor();
    expect(await textOf(page.locator('.team'))).toMatch(/Dev <b>Ops<\/b>\s+builds[\s\S]*Lena Lead\s+leads/);
    await page.getByRole('button', { name: 'What can each of you do?' }).click();
    await page.locator('.agent-card', { hasText: 'Lena Lead' }).click();
    expect(await page.getByLabel('Message').inputValue()).toBe('@lead What can each of you do?');
    await page.keyboard.press('Escape');
    await page.keyboard.press('n');
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('composer');
    await page.getByLabel('Your name').fill('Alice');
    await page.getByLabel('Your name').press('Tab');
    await write(page, 'hello there');
    await message(page, 'Noted: hello there').waitFor();
    expect(await textOf(message(page, 'hello there').first())).toMatch(/^AL\s+Alice/);
    expect(await textOf(page.locator('.row', { hasText: 'hello there' }))).toContain('now');
    expect(page.url()).toMatch(/#\/c\/\w+$/);
    await write(page, 'once more');
    await message(page, 'Noted: once more').waitFor();
    await expect.poll(() => page.evaluate(OVERLAPS)).toEqual([0, 0, 0, 0]); // the first post has its day now
  });

  itLong(
    'a person can tell conversations with equal titles apart, and deleted ones are not listed',
    async () => {
      for (const id of ['twin-one', 'twin-two', 'single'])
        await talk(id, id === 'single' ? 'alone' : 'the same');
      const page = await stage.look('#/c/twin-one');
      const rows = page.locator('.row', { hasText: 'the same' });
      await expect.poll(() => rows.locator('.id').allInnerTexts()).toEqual(['twin-two', 'twin-one']);
      expect(await page.locator('.row', { hasText: 'alone' }).locator('.id').count()).toBe(0);
      await page.keyboard.press('Control+k');
      await page.keyboard.type('same');
      const hits = page
        .getByRole('option')
        .filter({ has: page.locator('.snippet', { hasText: /^the same/ }) });
      await expect
        .poll(async () => (await hits.locator('.id').allInnerTexts()).sort())
        .toEqual(['twin-one', 'twin-two']);
      await page.keyboard.press('Escape');
      const openMenu = () => page.getByRole('button', { name: 'More', exact: true }).click();
      await openMenu();
      const remove = await centreOf(page.getByRole('button', { name: 'Delete this conversation' }));
      await page.mouse.click(remove.x, remove.y);
      await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Cancel');
      expect(await clickAgain(page)).toBe(false);
      await page.keyboard.press('Escape'); // closes the menu, and nothing else
      const asks = page.locator('.menu-list button.danger', { hasText: 'this conversation' });
      await asks.waitFor({ state: 'attached' }); // the event of the closed menu has removed the confirmation
      await asks.waitFor({ state: 'hidden' });
      expect(page.url()).toMatch(/twin-one$/);
      expect((await stage.api<{ id: string }>('GET', 'conversations/twin-one')).id).toBe('twin-one');
      await page.evaluate(`{
      document.querySelector('.controls .at-end').click();
      document.querySelector('.menu-list button.danger').click(); // before the event of the opened menu
      new Promise((shown) => setTimeout(() => requestAnimationFrame(shown), 100));
    }`);
      const cancel = page.getByRole('button', { name: 'Cancel', exact: true });
      expect(await cancel.isVisible()).toBe(true);
      await cancel.press('Escape');
      await cancel.waitFor({ state: 'hidden' });
      await openMenu();
      await page.getByRole('button', { name: 'Delete this conversation' }).focus();
      await page.keyboard.down('Enter');
      await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Cancel');
      await page.keyboard.down('Enter'); // held
      await page.keyboard.up('Enter');
      await page.getByRole('button', { name: 'Delete', exact: true }).press('Enter');
      await rows.filter({ hasText: 'twin-one' }).waitFor({ state: 'detached' });
      await expect.poll(() => page.url()).toMatch(/#\/$/);
      await expect.poll(() => rows.count()).toBe(1);
      expect(await stage.api('GET', 'conversations/twin-one')).toMatchObject({ code: 'NOT_FOUND' });
    },
  );

  itLong(
    'a conversation that was deleted elsewhere says so at once, and a message begins it anew',
    async () => {
      await talk('elsewhere', 'the first text');
      const page = await stage.open('elsewhere', 'Noted: the first text');
      await page.getByLabel('Your name').fill('Alice');
      await page.getByLabel('Your name').press('Tab');
      await stage.api('DELETE', 'conversations/elsewhere');
      await page.getByText('This conversation was deleted. Your next message begins a new one.').waitFor();
      await write(page, 'the second text');
      await message(page, 'Noted: the second text').waitFor();
      expect(await message(page, 'the first text').count()).toBe(0);
      expect(await page.getByText('This conversation was deleted').count()).toBe(0);
    },
  );

  it('a conversation that was archived and deleted says who gets the next message, and that one begins it anew', async () => {
    await talk('put-away', 'the old text');
    const page = await stage.open('put-away', 'Noted: the old text');
    await stage.api('POST', 'conversations/put-away/mode', {
      mode: 'agent',
      agent: 'dev',
      publisher: 'alice',
    });
    await until(() => page.locator('#recipients').innerText()).toMatch(/^To Dev/);
    await stage.api('POST', 'conversations/put-away/label', { archived: true, publisher: 'alice' });
    await page.getByText('This conversation is archived.').waitFor();
    await stage.api('DELETE', 'conversations/put-away');
    await page.getByText('This conversation was deleted.').waitFor();
    expect(await textOf(page.locator('#recipients'))).toMatch(/^To Lena Lead/);
    expect(await page.locator('main header .controls').count()).toBe(0);
    await write(page, 'the new text');
    await message(page, 'Noted: the new text').waitFor();
    expect(await message(page, 'the old text').count()).toBe(0);
  });

  it('lines of people are shown as typed, and those of an agent as Markdown', async () => {
    await talk('lines', 'one\ntwo');
    const page = await stage.look('#/c/lines');
    const answer = message(page, 'Noted:');
    await answer.waitFor();
    expect(await message(page, 'one').first().locator('.prose br').count()).toBe(1);
    expect([await answer.locator('.prose br').count(), await textOf(answer.locator('.prose'))]).toEqual([
      0,
      'Noted: one two',
    ]);
  });

  it('the console shows text as it is generated, which agents work, and how far each agent has read', async () => {
    const page = await stage.look('#/c/live');
    await page.locator('.thread').waitFor();
    await post('live', 'for a while, please');
    await page.locator('article.draft', { hasText: /(word ){3}/ }).waitFor();
    expect(await page.locator('strong', { hasText: 'at last' }).count()).toBe(0);
    await page.locator('.row .talking', { hasText: 'Lena Lead at work' }).waitFor();
    await page.locator('article.message:not(.draft) strong', { hasText: 'at last' }).waitFor();
    expect(await page.locator('article.draft').count()).toBe(0);
    expect(await textOf(page.locator('.place', { hasText: 'at last' }).locator('.read-marker'))).toContain(
      'LL',
    );
    await page.locator('.row .talking').waitFor({ state: 'detached' });
    expect(await page.locator('[aria-live]').innerText()).toMatch(/^Lena Lead: word word/);
  });

  it('a person mentions an agent with the keyboard, and chooses the delivery of a message', async () => {
    await talk('named', 'hello');
    const page = await stage.open('named', 'Noted: hello');
    await page.keyboard.press('c');
    await page.keyboard.type('ask @');
    await expect.poll(() => page.locator('.suggestions').getByRole('option').count()).toBe(2);
    await page.keyboard.type('d');
    await page.keyboard.press('Tab');
    expect(await page.getByLabel('Message').inputValue()).toBe('ask @dev ');
    await page.keyboard.type('now');
    await page.getByLabel('While they work').selectOption('queue');
    await page.getByLabel('Message').press('Enter');
    await message(page, 'Noted: ask @dev now').waitFor();
    const asked = await textOf(message(page, 'ask @dev now').first());
    expect(asked).toContain('to Dev <b>Ops</b>');
    expect(asked).toContain('queue');
  });

  it('a person approves one call and denies another in the thread', async () => {
    const page = await stage.begin('calls', 'write it');
    await page.getByText('1 approval needed').waitFor();
    await page.locator('.row', { hasText: 'write it' }).getByText('approval needed').waitFor();
    await page.getByLabel('Reason').fill('not today');
    await page.getByRole('button', { name: 'Deny' }).click();
    await message(page, /That is what came of it: .*not today/s).waitFor();
    await write(page, 'write it again');
    await page.getByRole('button', { name: 'Approve' }).click();
    await expect.poll(() => page.locator('.call.done').count()).toBe(2);
    const call = page.locator('.call').last();
    expect(await textOf(call)).toMatch(/Approved by console/);
    await call.locator('summary').click();
    expect(await textOf(call)).toMatch(/content\s+kept[\s\S]*Result[\s\S]*note\.md/);
    expect(await call.locator('summary .meta').innerText()).toMatch(/[\d.]+ m?s/);
  });

  it('a person answers a question with one of its options, or with a text', async () => {
    const page = await stage.begin('asked', 'ask me');
    await page.setViewportSize({ width: 320, height: 640 });
    const [card, button] = [
      page.locator('.question'),
      page.getByRole('button', { name: 'Answer', exact: true }),
    ];
    const endOf = async (one: Locator) => {
      const box = await one.boundingBox();
      return (box?.x ?? 0) + (box?.width ?? Number.NaN);
    };
    expect(await endOf(button)).toBeLessThan(await endOf(card));
    await page.locator('.question').getByRole('button', { name: 'blue' }).click();
    await message(page, 'So it is blue.').waitFor();
    await write(page, 'ask me again');
    await page.getByLabel('Your answer').fill('a warm grey');
    await page.getByLabel('Your answer').press('Enter');
    await message(page, 'So it is a warm grey.').waitFor();
    expect(await textOf(page.locator('.question').last())).toMatch(
      /answered by .+: a warm grey \(of “red”, “blue”\)/,
    );
  });

  itLong(
    'of two questions a button answers its own, and an answer that comes after another one says so',
    async () => {
      const page = await stage.begin('both', 'ask both');
      const [size, form] = ['Which size?', 'Which form?'].map((text) =>
        page.locator('.question', { hasText: text }),
      );
      await form?.getByRole('button', { name: 'round' }).click();
      await form?.getByText(/answered by .+: round/).waitFor();
      const { entries } = await stage.api<{ entries: Entry[] }>('GET', 'conversations/both/entries');
      const asked = entries.find((entry) => entry.type === 'message' && entry.tool_calls)?.index;
      await page.route('**/messages', async (route) => {
        await post('both', 'large', { to: ['lead'], replyTo: `c${asked}_0`, author: { name: 'Bob' } });
        await route.continue();
      });
      await size?.getByRole('button', { name: 'small' }).click();
      expect(await textOf(page.getByRole('alert'))).toContain('This question did not wait any more');
      expect(await textOf(page.locator('.late'))).toContain('Bob had answered the question');
      expect(await textOf(size as Locator)).toContain('answered by Bob: large');
    },
  );

  it('a person stops and resumes the conversation and one agent, and switches phase and mode', async () => {
    await talk('steered', 'hello');
    const page = await stage.look('#/c/steered');
    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.locator('.band-title', { hasText: 'The conversation was stopped' }).waitFor();
    await write(page, 'are you there?');
    await message(page, 'are you there?').waitFor();
    await page.mouse.move(0, 0);
    await page.getByRole('button', { name: 'Resume' }).click();
    await message(page, 'Noted: are you there?').waitFor();
    await page.getByTitle('Phase and mode: who answers').click();
    await page
      .locator('.settings')
      .getByText('Lena Lead answers a message that names no agent, because')
      .waitFor();
    await page.getByRole('combobox', { name: 'Phase' }).selectOption('plan');
    await page.locator('.band-title', { hasText: /^phase plan$/ }).waitFor();
    await page.getByLabel('Mode').selectOption('chat');
    await page.locator('.band-title', { hasText: 'mode chat' }).waitFor();
    await expect.poll(() => page.getByRole('combobox', { name: 'Phase' }).inputValue()).toBe('plan');
    await page.locator('button.chip', { hasText: 'Dev' }).click();
    await page.getByRole('button', { name: 'Give the floor' }).click();
    await page.locator('.people', { hasText: 'has the floor' }).waitFor();
    await page.locator('button.chip', { hasText: 'Lena' }).click();
    await page.locator('.menu-list:popover-open').getByRole('button', { name: 'Stop' }).click();
    await page.locator('.band-title', { hasText: 'Lena Lead was stopped' }).waitFor();
    const document = await stage.api('GET', 'conversations/steered');
    expect(document).toMatchObject({
      phase: 'plan',
      mode: 'agent',
      activeAgent: 'dev',
      agents: { lead: { status: 'stopped' } },
    });
  });

  it('the console shows delegations and handoffs in the thread and over time', async () => {
    await talk('team', 'delegate it');
    await talk('team', 'hand it over');
    const page = await stage.look('#/c/team');
    expect(await textOf(page.locator('.passage.delegation'))).toMatch(
      /Lena Lead\s+asks\s+Dev <b>Ops<\/b>\s+answered in entry \d+/,
    );
    expect(await textOf(page.locator('.passage.handoff'))).toMatch(
      /hands over to\s+Dev <b>Ops<\/b>\s+\d\d:\d\d\s+\d+\s+Please build it\./,
    );
    await message(page, 'calls handoff').waitFor(); // its answer has no text
    expect(await page.locator('.call').count()).toBe(0); // What the lines already show needs no row.
    await page.keyboard.press('t');
    await page.locator('.timeline svg').first().waitFor();
    expect(await page.locator('.lane-picture svg').getAttribute('aria-label')).toBe(
      '2 agents, 5 turns, 5 model calls, 1 handoff, 1 delegation, 2 posts',
    );
    const kinds = async (selector: string) => page.locator(`.lane-picture ${selector}`).count();
    expect([await kinds('.span.turn'), await kinds('.span.call')]).toEqual([2, 2]); // one path for each lane
    expect([await kinds('.passage-line.delegation-requested'), await kinds('.passage-line.handoff')]).toEqual(
      [1, 1],
    );
    expect(await textOf(page.locator('.spending'))).toMatch(
      /Lena Lead\s+3[\s\S]*Dev <b>Ops<\/b>\s+2[\s\S]*All\s+5/,
    );
    await page.locator('.passage-line').first().waitFor();
    await page.keyboard.press('Escape');
    await page.locator('.passage.handoff').waitFor();
  });

  it('a person opens the account of an answer: its exact context, the sizes, and the changes', async () => {
    await talk('why', 'first');
    await talk('why', 'between', { to: ['dev'] });
    await talk('why', 'second');
    const page = await stage.look('#/c/why');
    await message(page, 'Noted: second').hover();
    await message(page, 'Noted: second')
      .getByRole('link', { name: /Why did/ })
      .click();
    const panel = page.locator('.answer-panel');
    expect(await textOf(panel.locator('.figure'))).toMatch(/^[\d,]+ of [\d,]+ tokens$/);
    expect(await textOf(panel)).toContain('yes: the log has the hash of these bytes');
    const view = await stage.api<{ report: { parts: object[]; tokens: number } }>(
      'GET',
      `conversations/why/view?agent=lead&at=${page.url().split('/').at(-1)}`,
    );
    expect(await panel.locator('.parts > li').count()).toBe(view.report.parts.length);
    expect(await textOf(panel.locator('.figure strong'))).toBe(view.report.tokens.toLocaleString('en'));
    expect(await textOf(panel.locator('.changes'))).toMatch(/away-block[\s\S]*between/);
    expect(await textOf(panel.locator('.legend'))).toMatch(
      /prefix[\s\S]*trigger[\s\S]*for the answer[\s\S]*free/,
    );
    expect(await textOf(panel)).toContain('Nothing. The agent got its complete view.');
    await panel.locator('.parts summary', { hasText: 'trigger' }).click();
    await panel.locator('.parts').getByRole('button', { name: 'Show entry' }).last().click();
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toMatch(/second/);
    await page.keyboard.press('Escape');
    await expect.poll(() => panel.count()).toBe(0);
  });
});
