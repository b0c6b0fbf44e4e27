import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { on } from '../support/route-rules.ts';
import {
  centreOf,
  clickAgain,
  escapeLater,
  inboxItem,
  message,
  openItem,
  pressAlone,
  sharedStage,
  textOf,
  until,
} from './support.ts';
import { RULES as TEAM_RULES } from './team.ts';

const RULES = [
  on('/^fail/', { text: '', error: { code: 'RATE_LIMITED', message: 'Ask less often.' } }),
  on('/^Continue/', { text: 'I am back.' }),
  on('/^ask many/', {
    tool_calls: Array.from({ length: 31 }, (_, at) => ({
      name: 'ask',
      arguments: { question: `Question ${at + 1}?` },
    })),
  }),
  on('/^tell and write/', {
    text: 'I **keep** the note, as you asked.',
    tool_calls: [{ name: 'fs_write', arguments: { path: '@project/told.md', content: 'x' } }],
  }),
  on('/^write both/', {
    tool_calls: ['one', 'two'].map((name) => ({
      ...{ name: 'fs_write', arguments: { path: `@project/${name}.md`, content: 'x' } },
    })),
  }),
  ...TEAM_RULES,
];

const HELD_KEY = `document.activeElement.dispatchEvent(
  new KeyboardEvent('keydown', { key: 'a', repeat: true, bubbles: true }))`;

/** A page that is not looked at, in a browser that allows notifications. */
const FAKE_ALERTS = `
  window.told = [];
  document.hasFocus = () => false;
  window.Notification = class {
    static permission = 'granted';
    static requestPermission = async () => 'granted';
    constructor(title, { body }) { window.told.push(title + ': ' + body); }
  };
  const start = OscillatorNode.prototype.start;
  OscillatorNode.prototype.start = function (at) { if (this.frequency.value === 880) window.told.push('sound'); return start.call(this, at); };
`;

/** What needs a person, of all conversations. */
describe.skipIf(chromiumPath === null)('the inbox in Chromium', () => {
  const stage = sharedStage({ script: RULES }, /status of 409/);

  const { post } = stage;
  const entries = async (conversation: string) => {
    const path = `conversations/${conversation}/entries`;
    const page = await stage.api<{ entries: { type: string; content?: string }[] }>('GET', path);
    return page.entries.map(({ type, content }) => `${type} ${content ?? ''}`).join('\n');
  };
  const item = inboxItem;

  it('the first page has what needs the person, then what runs, then the team, in the font of the daemon', async () => {
    await post('works', 'slowly, please');
    await post('needs', 'ask me first');
    const page = await stage.look();
    const needs = page.getByRole('region', { name: 'Needs you' });
    await until(() => textOf(needs)).toMatch(
      /^Needs you\s+ask me first\s+Answer needed\s+Answer in the inbox$/,
    );
    await until(() => textOf(page.getByRole('region', { name: 'At work' }))).toMatch(
      /^At work\s+slowly, please\s+Lena Lead$/,
    );
    expect(await page.locator('.start-body h3').allInnerTexts()).toEqual([
      'Needs you',
      'At work',
      'Your team',
      'Start with',
    ]);
    expect(await page.evaluate('document.fonts.check("16px \'Inter Variable\'", "A")')).toBe(true);
    expect(await page.evaluate('[...document.fonts].some(({ status }) => status === "loaded")')).toBe(true);
    await needs.getByRole('link', { name: 'ask me first' }).click();
    await page.getByRole('button', { name: 'red' }).click();
    await message(page, 'So it is red.').waitFor();
  });

  it('an approval has the words of the agent beside it, and says who asked', async () => {
    await post('told', 'tell and write');
    const page = await stage.look('#/inbox');
    const told = await openItem(page, 'tell and write');
    await told.getByRole('button', { name: 'Approve' }).waitFor();
    await until(() => textOf(told)).toMatch(/For alice\s*tell and write\s*I keep the note, as you asked\./);
    expect(await told.locator('strong').innerText()).toBe('keep');
    await told.getByRole('button', { name: 'Deny' }).click();
    await told.waitFor({ state: 'detached' });
  });

  it('a person approves and denies calls of other conversations by keyboard', async () => {
    const page = await stage.look();
    await page.locator('.inbox-link').waitFor();
    expect(await textOf(page.locator('.inbox-link .count'))).toBe('0');
    await post('one', 'write it, first');
    await until(() => page.title()).toBe('(1) Parley');
    expect(await page.locator('link[rel="icon"]').getAttribute('href')).toContain('icon-marked');
    await post('two', 'write it, second');
    await until(() => textOf(page.locator('.inbox-link .count'))).toBe('2');
    await page.keyboard.press('i');
    await until(() => page.evaluate('getComputedStyle(document.activeElement).outlineOffset')).toBe('-2px'); // no edge cuts it
    await item(page, 'second').waitFor();
    await until(() => textOf(item(page, 'first').locator('.detail'))).toContain('@project/note.md'); // the first one
    const approve = page.locator('.detail').getByRole('button', { name: 'Approve' });
    await page.keyboard.press('ArrowDown');
    await approve.waitFor(); // its difference is shown
    await page.evaluate(HELD_KEY); // a key that is held answers nothing
    await page.keyboard.press('ArrowUp'); // it is the first one
    await page.keyboard.press('d');
    await item(page, 'first').waitFor({ state: 'detached' });
    expect(await textOf(page.getByRole('alert'))).toBe('Denied by console: fs_write @project/note.md kept');
    await page.keyboard.press('a'); // no item is selected: it answers nothing
    await page.keyboard.press('ArrowDown');
    await approve.waitFor();
    await page.keyboard.press('a');
    await item(page, 'second').waitFor({ state: 'detached' });
    await page.getByText('Nothing needs you.').waitFor();
    await until(() => page.title()).toBe('Parley');
    expect(await page.locator('link[rel="icon"]').getAttribute('href')).not.toContain('icon-marked');
    await until(() => entries('two')).toContain('That is what came of it');
    expect(await entries('one')).toContain('DENIED');
  });

  it('after Esc in the reason of a call, the keys of its answers act', async () => {
    await post('left-reason', 'write it, with a reason');
    const page = await stage.look('#/inbox');
    const waiting = await openItem(page, 'with a reason');
    await waiting.getByRole('button', { name: 'Approve' }).waitFor();
    await waiting.getByLabel('Reason').fill('not now');
    await page.keyboard.press('Escape');
    await pressAlone(page, 'd');
    await waiting.waitFor({ state: 'detached' });
    expect(await textOf(page.getByRole('alert'))).toMatch(/^Denied by console \(not now\): fs_write /);
  });

  it('a click on a row selects it, and an arrow key after a key that was refused selects what is shown', async () => {
    for (const name of ['one', 'two', 'three']) await post(`clicked-${name}`, `write it, clicked ${name}`);
    const page = await stage.look('#/inbox');
    const [one, two, three] = ['one', 'two', 'three'].map((name) => item(page, `clicked ${name}`));
    await three?.waitFor();
    const approve = page.locator('.detail').getByRole('button', { name: 'Approve' });
    await two?.locator('.inbox-line').click();
    await two?.locator('.detail').getByRole('button', { name: 'Approve' }).waitFor();
    await page.keyboard.press('a');
    await two?.waitFor({ state: 'detached' });
    await one?.locator('.inbox-line').click();
    await one?.getByText('May this call run?').click();
    await approve.waitFor();
    await pressAlone(page, 'a');
    expect(await textOf(page.getByRole('alert'))).toContain('Press an arrow key or Tab, then a.');
    for (const key of ['ArrowUp', 'ArrowDown']) await page.keyboard.press(key); // there and back
    await page.keyboard.press('a');
    await one?.waitFor({ state: 'detached' });
    await until(() => textOf(three?.locator('.detail') ?? page.locator('none'))).toContain(
      '@project/note.md',
    );
    await page.keyboard.press('ArrowDown');
    await approve.waitFor();
    await page.keyboard.press('d');
    await three?.waitFor({ state: 'detached' });
  });

  itLong('after a button of an item the next key selects the item that took its place', async () => {
    const page = await stage.look('#/inbox');
    for (const name of ['above', 'here', 'below']) await post(name, `write it, ${name}`);
    await until(() => page.locator('.inbox-entry').count()).toBe(3);
    await page.locator('.inbox-entry').nth(1).focus();
    const name = await page.locator('.inbox-entry').nth(2).getAttribute('aria-label');
    await page.locator('.detail').getByLabel('Reason').fill('no');
    await page.locator('.detail').getByRole('button', { name: 'Deny' }).press('Enter');
    await until(() => page.locator('.inbox-entry').count()).toBe(2);
    await page.keyboard.press('ArrowDown');
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe(name);
    for (const rest of [1, 0]) {
      await page.locator('.detail').getByRole('button', { name: 'Deny' }).press('Enter');
      await until(() => page.locator('.inbox-entry').count()).toBe(rest);
    }
  });

  itLong('after an answer the next key selects the item that took its place', async () => {
    const page = await stage.look();
    for (const name of ['top', 'middle', 'end']) await post(name, `write it, ${name}`);
    await page.keyboard.press('i');
    await until(() => page.locator('.inbox-entry').count()).toBe(3);
    const below = page.locator('.inbox-entry').nth(2);
    const name = await below.getAttribute('aria-label');
    const deny = async () => {
      await page.locator('.detail').getByRole('button', { name: 'Deny' }).waitFor();
      await page.keyboard.press('d');
    };
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await deny();
    await until(() => page.locator('.inbox-entry').count()).toBe(2);
    await page.keyboard.press('ArrowDown');
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe(name);
    for (const _ of [1, 2]) await page.keyboard.press('ArrowUp');
    for (const rest of [1, 0]) {
      await deny();
      await until(() => page.locator('.inbox-entry').count()).toBe(rest);
      await page.keyboard.press('ArrowDown');
    }
  });

  itLong('after an answer of another person the next key selects the item that took its place', async () => {
    for (const name of ['upper', 'taken', 'lower']) await post(name, `write it, ${name}`);
    const page = await stage.look('#/inbox');
    await until(() => page.locator('.inbox-entry').count()).toBe(3);
    const names = await page.locator('.inbox-entry').evaluateAll((all) => all.map((one) => one.ariaLabel));
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const focused = () => page.evaluate('document.activeElement.ariaLabel');
    await until(focused).toBe(names[1]);
    const conversation = /upper|taken|lower/.exec(names[1] ?? '')?.[0];
    await stage.api('POST', `conversations/${conversation}/stop`, { publisher: 'alice' });
    await until(() => page.locator('.inbox-entry').count()).toBe(2);
    await page.keyboard.press('ArrowDown');
    await until(focused).toBe(names[2]);
    for (const other of ['upper', 'taken', 'lower'])
      await stage.api('POST', `conversations/${other}/stop`, { publisher: 'alice' });
    await page.getByText('Nothing needs you.').waitFor();
    await stage.endOfTest(/status of 404/); // the difference of a call that a stop has just ended
  });

  itLong('shows thirty items at first, and the others at the press of a button', async () => {
    await post('many', 'ask many');
    const page = await stage.look('#/inbox');
    await until(() => page.locator('.inbox-entry').count()).toBe(30);
    await page.getByRole('button', { name: /^Show more/ }).click();
    await page.locator('.inbox-entry', { hasText: 'Question 31?' }).waitFor();
    await stage.api('POST', 'conversations/many/stop', { publisher: 'alice' });
    await page.locator('.inbox-entry', { hasText: 'Question' }).first().waitFor({ state: 'detached' });
  });

  it('items are rows by conversation, and the chosen one is beside them', async () => {
    const page = await stage.look('#/inbox');
    await post('group', 'ask both');
    await page.locator('.inbox li', { hasText: 'ask both' }).locator('.inbox-entry').nth(1).waitFor();
    expect(await page.locator('.inbox li > h3').allInnerTexts()).toEqual(['ask both']);
    const heading = page.locator('.inbox h3 a');
    await heading.click();
    await page.getByRole('heading', { name: 'ask both' }).waitFor();
    await page.goBack();
    await heading.waitFor();
    await until(() => page.locator('.summary').allInnerTexts()).toEqual(['Which size?', 'Which form?']);
    const box = (selector: string) => page.locator(selector).first().boundingBox();
    expect((await box('.inbox-line'))?.height).toBeLessThan(50);
    expect((await box('.detail'))?.x).toBeGreaterThan((await box('.inbox-line'))?.x ?? 0);
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await until(() => textOf(page.locator('.detail'))).toContain('Which form?');
    await page.locator('.inbox-line').first().focus(); // as Tab does
    await until(() => textOf(page.locator('.detail'))).toContain('Which size?');
    await page.keyboard.press('Tab');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('1');
    await expect.poll(() => page.locator('.summary').allInnerTexts()).toEqual(['Which form?']);
    await until(() => textOf(page.locator('.detail'))).toContain('Which form?');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('1');
    await page.getByText('Nothing needs you.').waitFor();
  });

  itLong('a click at the place of an answered card does not answer the card that moved there', async () => {
    const page = await stage.look('#/inbox');
    await post('answered', 'write it, answered');
    await item(page, 'answered').getByRole('button', { name: 'Approve' }).waitFor();
    await post('moved', 'write it, moved');
    await item(page, 'moved').waitFor();
    const answers: string[] = [];
    // The buttons of the other card come after the second click, which reaches none.
    await page.route('**/approvals/*/change', async (route) => {
      await page.waitForTimeout(300);
      await route.continue();
    });
    page.on('request', (request) => request.method() === 'POST' && answers.push(request.url()));
    await page.evaluate('window.now = Date.now(); Date.now = () => window.now');
    const { x, y } = await centreOf(item(page, 'answered').getByRole('button', { name: 'Approve' }));
    await page.mouse.click(x, y);
    await item(page, 'answered').waitFor({ state: 'detached' });
    await page.mouse.click(x, y);
    await item(page, 'moved').getByRole('button', { name: 'Approve' }).waitFor();
    expect(await clickAgain(page)).toBe(false);
    await page.mouse.click(x, y);
    expect(answers).toHaveLength(1);
    await page.evaluate('window.now += 1000');
    await page.mouse.click(x, y);
    await item(page, 'moved').waitFor({ state: 'detached' });
    expect(answers).toHaveLength(2);
  });

  it('the palette runs the answers of the chosen item', async () => {
    await post('by-name', 'write it by name');
    const page = await stage.look('#/inbox');
    await (await openItem(page, 'by name')).getByRole('button', { name: 'Deny' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('>deny');
    await page.getByRole('option', { name: /^Deny/ }).waitFor();
    await page.keyboard.press('Enter');
    await item(page, 'by name').waitFor({ state: 'detached' });
    await until(() => entries('by-name')).toMatch(/approval-answered/);
  });

  itLong('the notice of a denial repeats its reason', async () => {
    await post('reasoned', 'write it, reasoned');
    const page = await stage.look('#/inbox');
    const detail = await openItem(page, 'write it, reasoned');
    await detail.getByLabel('Reason').fill('not  now');
    await detail.getByRole('button', { name: 'Deny' }).click();
    expect(await textOf(page.getByRole('alert'))).toMatch(/^Denied by console \(not now\): fs_write /);
  });

  it('a person whose answer is the second one reads who was first', async () => {
    await post('both', 'write it, both');
    const page = await stage.look('#/inbox');
    const approve = (await openItem(page, 'write it, both')).getByRole('button', { name: 'Approve' });
    await approve.waitFor();
    await page.route('**/approvals/*', async (route) => {
      const first = { answer: 'deny', author: { name: 'Zoë' }, publisher: 'alice' };
      await stage.api('POST', new URL(route.request().url()).pathname.slice('/api/'.length), first);
      await route.continue();
    });
    await approve.click();
    expect(await textOf(page.getByRole('alert'))).toBe('Zoë denied this call first.');
    await item(page, 'write it, both').waitFor({ state: 'detached' });
  });

  it('a person answers a question with an option, and another one with a text', async () => {
    await post('red', 'ask me in red');
    await post('own', 'ask me in my words');
    const page = await stage.look('#/inbox');
    await item(page, 'in red').locator('.summary', { hasText: 'Which colour?' }).waitFor();
    await item(page, 'my words').locator('.summary', { hasText: 'Which colour?' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await item(page, 'in red').getByRole('button', { name: 'red' }).waitFor();
    await page.keyboard.press('1');
    await item(page, 'in red').waitFor({ state: 'detached' });
    expect(await textOf(page.getByRole('alert'))).toBe('Answered “red”: Which colour?');
    await until(() => entries('red')).toContain('So it is red.');
    await page.keyboard.press('ArrowDown');
    await item(page, 'my words').getByLabel('Your answer').waitFor();
    expect(await textOf(page.locator('.inbox-keys'))).toContain('· r answer · Enter open');
    await page.keyboard.press('r');
    await page.keyboard.type('a dark green');
    await page.keyboard.press('Enter');
    await until(() => entries('own')).toContain('So it is a dark green.');
    expect(await textOf(page.getByRole('alert'))).toBe('Answered “a dark green”: Which colour?');
    await page.getByText('Nothing needs you.').waitFor();
  });

  it('an answer of the person makes no conversation unread that they have read, and the answer of its agent does', async () => {
    await post('own-calls', 'write both');
    await post('own-words', 'ask both of me');
    await until(() => entries('own-calls')).toMatch(/approval-requested.*approval-requested/s);
    await until(() => entries('own-words')).toContain('turn-ended');
    const page = await stage.look('#/inbox'); // what is older than the first visit was read
    for (const [text, answers] of [
      ['write both', ['Deny', 'Deny']],
      ['ask both of me', ['large', 'flat']],
    ] as const) {
      const open = () => item(page, text).first();
      // Of this conversation: the agent of the one before may write after it was left.
      const unread = () => page.locator('.row.unread', { hasText: text }).count();
      for (const [at, name] of answers.entries()) {
        await open().locator('.inbox-line').click();
        await until(unread).toBe(0);
        await open().getByRole('button', { name, exact: true }).click();
        await until(() => item(page, text).count()).toBe(1 - at);
        if (at === 0) await new Promise((resolve) => setTimeout(resolve, 2_500)); // the list has it by then
        await until(unread).toBe(at);
      }
      await page.locator('.row', { hasText: text }).click();
      await until(unread).toBe(0);
      await page.evaluate("location.hash = '#/inbox'");
    }
  });

  it('a failed turn says why, and is retried or dismissed; what is dismissed stays away after a reload', async () => {
    await post('again', 'fail, then retry');
    await post('never', 'fail, then forget');
    await post('passed', 'fail, then pass on');
    const page = await stage.look('#/inbox');
    const passed = await openItem(page, 'then pass on');
    await passed.getByRole('button', { name: 'Ask another agent' }).click();
    await passed.getByRole('button', { name: /Dev/ }).click();
    await item(page, 'then pass on').waitFor({ state: 'detached' });
    await until(() => entries('passed')).toContain('Please continue for');
    await page.reload();
    const retried = await openItem(page, 'then retry');
    await until(() => textOf(retried)).toMatch(/For alice[\s\S]*Ask less often\./);
    expect(await textOf(page.locator('.inbox-keys'))).not.toMatch(/\br\b/); // it is the key of "Try again"
    expect(await item(page, 'then pass on').count()).toBe(0);
    await retried.getByRole('button', { name: 'Open the request' }).click();
    await page.locator('.answer-panel').waitFor();
    await page.goto(page.url().replace(/#.*/, '#/inbox'));
    await openItem(page, 'then retry');
    await retried.getByRole('button', { name: 'Try again' }).click();
    await item(page, 'then retry').waitFor({ state: 'detached' });
    await until(() => entries('again')).toContain('I am back.');
    const dismiss = () => item(page, 'then forget').getByRole('button', { name: 'Dismiss' }).click();
    await openItem(page, 'then forget');
    await dismiss();
    await item(page, 'then forget').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('alert').waitFor({ state: 'detached' });
    await openItem(page, 'then forget');
    await dismiss();
    await item(page, 'then forget').waitFor({ state: 'detached' });
    await page.reload();
    await page.getByText('Nothing needs you.').waitFor();
  });

  it('what was dismissed by key comes back by a command, while that is offered', async () => {
    await post('undone', 'fail, then undo');
    const page = await stage.look('#/inbox');
    await (await openItem(page, 'then undo')).getByRole('button', { name: 'Dismiss' }).press('Enter');
    await item(page, 'then undo').waitFor({ state: 'detached' });
    await page.keyboard.press('Control+k');
    await page.keyboard.type('>undo');
    await page.getByRole('option', { name: 'Undo (Dismissed: fail, then undo)' }).waitFor();
    await page.keyboard.press('Enter');
    await item(page, 'then undo').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.keyboard.press('Control+k');
    await page.keyboard.type('>undo');
    expect(await page.getByRole('option', { name: /^Undo/ }).count()).toBe(0);
  });

  it('the list says "now" of what is younger than a minute', async () => {
    await post('minute', 'hello minute');
    const page = await stage.look();
    await page.clock.install();
    await page.goto(`${stage.url}/?minute#/`);
    const time = page.locator('.row', { hasText: 'hello minute' }).locator('time');
    await time.waitFor();
    await page.waitForTimeout(3_000); // the row is older than its newest entry
    await post('minute', 'hello again');
    await page.locator('.row', { hasText: 'Noted: hello again' }).waitFor();
    expect(await textOf(time)).toBe('now');
    await page.clock.fastForward(58_500);
    await page.clock.fastForward(3_000);
    await expect.poll(() => textOf(time), { timeout: 9_000 }).toMatch(/^\d\d:\d\d$/);
  });

  itLong('the time of an item goes by while nothing else changes', async () => {
    const page = await stage.look();
    await page.clock.install();
    await page.goto(`${stage.url}/?clock#/inbox`);
    await post('aged', 'ask me and wait');
    const time = item(page, 'ask me and wait').locator('.inbox-line time');
    expect(await textOf(time)).toBe('now');
    await page.clock.fastForward(120_000);
    await until(() => textOf(time)).toMatch(/^\d\d:\d\d$/);
    await post('aged', 'red'); // the first page shows few items, and a later test looks for its own there
  });

  it('an approval after long messages is shown, though an answer of the daemon cannot hold all of them', async () => {
    const quietly = (content: string) => post('lengthy', content, { includeInContext: false });
    for (const content of ['Long ones', ...Array(4).fill('x'.repeat(300_000))]) await quietly(content);
    await post('lengthy', 'tell and write');
    const page = await stage.look('#/inbox');
    const shown = await openItem(page, 'Long ones');
    await shown.getByText('I keep the note').waitFor();
    await shown.getByRole('button', { name: 'Deny' }).click();
    await item(page, 'Long ones').waitFor({ state: 'detached' });
  });

  it('the title of an item opens its conversation at the entry', async () => {
    await post('far', 'ask me from afar');
    const page = await stage.look('#/inbox');
    await openItem(page, 'ask me from afar');
    await page
      .getByRole('link', { name: 'ask me from afar', exact: true })
      .and(page.locator('.opens'))
      .click();
    await until(() => page.url()).toMatch(/#\/c\/far$/);
    await until(() => page.evaluate('document.activeElement.closest("article")?.innerText ?? ""')).toContain(
      'One thing first.',
    );
    const count = page.locator('.inbox-link .count');
    const before = Number(await textOf(count));
    await page.getByRole('button', { name: 'red', exact: true }).click();
    await until(() => textOf(count)).toBe(String(before - 1));
  });

  itLong(
    'Esc in a field selects its item, and then returns to the conversation from which the inbox was opened',
    async () => {
      await post('before', 'hello');
      await post('asked', 'ask me');
      const page = await stage.look('#/c/before');
      await page.getByRole('heading', { name: 'hello' }).waitFor();
      await page.evaluate('document.activeElement.blur()');
      await page.keyboard.press('i');
      const field = page.locator('.inbox-entry').getByLabel('Your answer').first();
      await field.focus();
      await page.keyboard.press('Escape');
      expect(await page.evaluate('document.activeElement.className')).toMatch(/^inbox-entry/);
      await escapeLater(page);
      await page.getByRole('heading', { name: 'hello' }).waitFor();
      expect(page.url()).toMatch(/#\/c\/before$/);
      await escapeLater(page);
      await until(() => page.evaluate('document.activeElement.getAttribute("aria-current")')).toBe('page');
      expect(page.url()).toMatch(/#\/c\/before$/);
    },
  );

  itLong(
    'a person who chose it gets one notification and one sound for all tabs, of new items alone',
    async () => {
      const page = await stage.look();
      const tabs = [page, await page.context().newPage()];
      for (const tab of tabs) {
        await tab.addInitScript(FAKE_ALERTS);
        await tab.goto(`${stage.url}/?fake#/inbox`); // loads it, also in the page that has it
        await tab.getByLabel('Notify me').waitFor();
      }
      await page.getByLabel('Notify me').check();
      await page.getByLabel('Sound').check();
      for (const tab of tabs) {
        await tab.reload();
        await tab.locator('.inbox-body').waitFor();
        await until(() => tab.locator('main.inbox').getAttribute('aria-busy')).toBe('false');
      }
      await post('late', 'ask me late');
      for (const tab of tabs) await item(tab, 'ask me late').waitFor();
      const told = await Promise.all(tabs.map((tab) => tab.evaluate<string[]>('window.told')));
      expect(told.flat().sort()).toEqual(['Answer needed: ask me late', 'sound']);
    },
  );

  itLong('it fits 320 pixels, and the list leads to it and back', async () => {
    await post('narrow', 'write it, narrow');
    const page = await stage.look('', { viewport: { width: 320, height: 640 } });
    await page.locator('.inbox-link').click();
    expect(await page.locator('.detail').count()).toBe(0); // one after the other
    await (await openItem(page, 'write it, narrow')).getByRole('button', { name: 'Approve' }).waitFor();
    for (const part of ['html', '.inbox-body'])
      expect(await page.evaluate(`document.querySelector('${part}').scrollWidth`)).toBe(320);
    await page.getByRole('link', { name: 'Back to the list' }).click();
    await page.locator('.row').first().waitFor();
  });

  itLong(
    'conversations with equal titles have their ids on the first page and in the inbox, as in the list',
    async () => {
      for (const id of ['alike-one', 'alike-two', 'unlike'])
        await post(id, id === 'unlike' ? 'ask me alone' : 'ask me alike');
      const page = await stage.look();
      const needs = page.getByRole('region', { name: 'Needs you' }).locator('li .title');
      await until(() => needs.filter({ hasText: 'alike' }).locator('.id').allInnerTexts()).toEqual([
        'alike-one',
        'alike-two',
      ]);
      await page.evaluate("location.hash = '#/inbox'");
      await until(() => page.locator('.inbox h3').allInnerTexts()).toContain('ask me alone');
      const heads = page.locator('.inbox h3', { hasText: 'alike' });
      expect(await heads.locator('.id').allInnerTexts()).toEqual(['alike-one', 'alike-two']);
      const look =
        "(({ whiteSpace, fontWeight }) => [whiteSpace, fontWeight])(getComputedStyle(document.querySelector('h3 .id')))";
      expect(await page.evaluate(look)).toEqual(['nowrap', '400']);
    },
  );
});
