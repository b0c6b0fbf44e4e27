import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { hasLongTests } from '../support/runs.ts';
import {
  inboxItem,
  message,
  openItem,
  pressAlone,
  type Stage,
  sharedStage,
  textOf,
  write,
} from './support.ts';

/** What a person types arrives where it is meant to, and starts nothing else. */
describe.skipIf(chromiumPath === null)('typing in Chromium', () => {
  const stage = sharedStage();

  type Page = Awaited<ReturnType<Stage['look']>>;
  const { post } = stage;
  const draft = (page: Page) => page.getByLabel('Message').inputValue();
  const typeOn = (page: Page, text: string) => page.keyboard.type(text, { delay: 30 });
  const blur = (page: Page) => page.evaluate('document.activeElement.blur()');

  it('a person continues to write after the first message of a conversation, and after a click on one in the list', async () => {
    await post('elsewhere', 'hello from elsewhere');
    const page = await stage.look();
    await write(page, 'hello there');
    await expect.poll(() => page.url()).toMatch(/#\/c\//);
    await message(page, 'hello there').first().waitFor();
    const focused = () => page.evaluate('document.activeElement.id');
    await expect.poll(focused).toBe('composer');
    await typeOn(page, 'and also');
    expect(await draft(page)).toBe('and also');
    await page.locator('.row').filter({ hasText: 'elsewhere' }).click();
    await message(page, 'hello from elsewhere').first().waitFor();
    await expect.poll(focused).toBe('composer');
    await typeOn(page, 'nice');
    expect(await draft(page)).toBe('nice');
  });

  it('the page says who gets a message, whose question it answers, and which name is none', async () => {
    const page = await stage.look();
    const to = () => textOf(page.locator('#recipients'));
    const says = (text: string) => expect.poll(to).toBe(text);
    await page.getByLabel('Message').waitFor();
    await says('To Lena Lead');
    await page.getByLabel('Message').fill('@dev @nobody');
    await says('To Dev <b>Ops</b>There is no agent @nobody.');
    await page.getByLabel('Message').fill('@nobody @de');
    await says('To Lena LeadThere is no agent @nobody.'); // @de can still become @dev
    await page.getByLabel('Message').press('Escape');
    await says('To Lena LeadThere is no agent @nobody, @de.');
    await page.getByLabel('Message').fill('ask me, please');
    await page.getByLabel('Message').press('Enter');
    await page.getByLabel('Your answer').waitFor();
    await says('Answers “Which colour?” of Lena Lead');
    await post('busy', '@dev slowly');
    const busy = await stage.look('#/c/busy');
    await expect
      .poll(() => textOf(busy.locator('#recipients')))
      .toBe('To Lena Lead. Dev <b>Ops</b>, who is working, does not get it.');
  });

  it('an agent that was hired here is offered by @ and has the menu of an agent, until it is dismissed', async () => {
    await post('hiring', 'hello');
    const temp = { slug: 'temp', name: 'Terry Temp', description: 'helps', persona: 'You help.' };
    await stage.api('POST', 'conversations/hiring/hire', { ...temp, publisher: 'alice' });
    const page = await stage.look('#/c/hiring');
    await page.locator('button.chip', { hasText: 'Terry Temp' }).click();
    await page.getByRole('button', { name: 'Write to @temp' }).click();
    expect(await draft(page)).toBe('@temp ');
    await page.getByLabel('Message').fill('@te');
    await page.getByRole('option', { name: /Terry Temp/ }).click();
    await page.getByLabel('Message').press('Enter');
    await message(page, '@temp').first().waitFor();
    await stage.api('POST', 'conversations/hiring/dismiss', { agent: 'temp', publisher: 'alice' });
    await page.locator('button.chip', { hasText: 'Terry Temp' }).waitFor({ state: 'detached' });
    expect(await page.locator('.people .chip', { hasText: 'Terry Temp' }).count()).toBe(0); // no person
  });

  itLong('a message with the name of an agent is not posted', async () => {
    const page = await stage.look('#/new');
    await page.getByLabel('What is your name?').fill('Lena Lead');
    await write(page, 'hello');
    expect(await textOf(page.getByRole('alert'))).toContain('Not sent: “Lena Lead” is the name of an agent.');
    expect(await draft(page)).toBe('hello');
    expect((await stage.api<{ letters: unknown[] }>('GET', 'dead-letters')).letters).toEqual([]);
  });

  itLong(
    'words that are typed beside a field answer nothing and leave no page, a single key does (KEYS-3)',
    async () => {
      const page = await stage.begin('risky', 'write it');
      const approve = page.getByRole('button', { name: 'Approve' });
      await approve.waitFor();
      await blur(page);
      await page.evaluate(
        "for (const key of 'xa') document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))",
      );
      expect(await page.getByRole('alert').count()).toBe(0); // a word replaces no notice
      await typeOn(page, 'Good idea, and now it is done'); // `G` selects the call, `a` and `d` answer it, `n` and `i` leave
      for (const key of hasLongTests ? 'ok, add' : 'kad') await pressAlone(page, key); // as slowly as some type
      expect(page.url()).toMatch(/#\/c\/risky$/);
      expect(await approve.isVisible()).toBe(true);
      await page
        .locator('article')
        .filter({ has: approve })
        .click({ position: { x: 200, y: 8 } });
      await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('ARTICLE');
      await pressAlone(page, 'a');
      await typeOn(page, 're you sure?');
      expect(await approve.isVisible()).toBe(true);
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('a');
      await approve.waitFor({ state: 'detached' });
      await message(page, 'That is what came of it').waitFor();
    },
  );

  itLong('after an answer with the mouse, a person continues to write', async () => {
    const page = await stage.begin('thanks', 'write it');
    await page.getByRole('button', { name: 'Approve' }).click();
    await message(page, 'That is what came of it').waitFor();
    await typeOn(page, 'thanks, and ask me');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'red', exact: true }).click();
    await message(page, 'So it is red.').waitFor();
    await typeOn(page, 'nice');
    expect(await draft(page)).toBe('nice');
    expect(page.url()).toMatch(/#\/c\/thanks$/);
  });

  itLong(
    'a person turns off the keys of one character, and on again, also with the mouse (KEYS-4)',
    async () => {
      const page = await stage.look();
      const help = page.getByRole('button', { name: 'Actions and keys' });
      await help.click();
      await page.getByRole('option', { name: 'Turn single-key shortcuts off' }).click();
      await page.reload();
      await help.waitFor();
      await blur(page);
      await pressAlone(page, 'i');
      await pressAlone(page, 's');
      expect(page.url()).toMatch(/#\/$/);
      await page.keyboard.press('Control+k');
      await page.getByRole('combobox', { name: /Search/ }).waitFor();
      await page.keyboard.press('Escape');
      await help.click();
      await page.getByRole('option', { name: 'Turn single-key shortcuts on' }).click();
      await page.getByRole('dialog', { name: 'Actions and keys' }).waitFor({ state: 'detached' });
      await pressAlone(page, 'i');
      await expect.poll(() => page.url()).toMatch(/#\/inbox$/);
    },
  );

  itLong(
    'what a person types as an answer moves to the message field when another person answers first (KEPT-1)',
    async () => {
      await post('both', 'ask me now');
      const [alice, bob] = [await stage.look('#/c/both'), await stage.look('#/c/both')];
      await bob.getByLabel('Your answer').focus();
      await typeOn(bob, 'I would lik');
      await alice.getByRole('button', { name: 'red', exact: true }).click();
      await message(bob, 'So it is red.').waitFor();
      await typeOn(bob, 'e green');
      await expect.poll(() => draft(bob)).toBe('I would like green');
      expect(bob.url()).toMatch(/#\/c\/both$/);
      expect(await textOf(bob.getByRole('alert'))).toMatch(
        /answered first. Your text is in the message field/,
      );
      expect(await draft(alice)).toBe('');
      await bob.getByLabel('Message').press('Enter');
      await message(bob, 'Noted: I would like green').waitFor();
      expect(await bob.getByRole('alert').count()).toBe(0); // the text is not there any more
    },
  );

  it('Shift+Enter starts a line of an answer, in the thread and in the inbox, and Enter sends all of it', async () => {
    const page = await stage.begin('lines', 'ask me in lines');
    await page.getByLabel('Your answer').focus();
    await typeOn(page, 'red');
    await page.keyboard.press('Shift+Enter');
    await typeOn(page, 'or blue');
    await expect.poll(() => page.getByLabel('Your answer').inputValue()).toBe('red\nor blue');
    await page.evaluate("location.hash = '#/inbox'");
    const field = (await openItem(page, 'in lines')).getByLabel('Your answer');
    await expect.poll(() => field.inputValue()).toBe('red\nor blue');
    await field.press('Control+End');
    await page.keyboard.press('Shift+Enter');
    await typeOn(page, 'as you like');
    await page.keyboard.press('Enter');
    await field.waitFor({ state: 'detached' });
    await page.evaluate("location.hash = '#/c/lines'");
    await message(page, /So it is red\s+or blue\s+as you like\./).waitFor();
    expect(await draft(page)).toBe('');
  });

  it('what a person types as an answer stays at its question when it would answer another one (KEPT-1)', async () => {
    const page = await stage.begin('asked-twice', 'ask both');
    const first = page.locator('.ask-card', { hasText: 'Which size?' });
    await first.getByLabel('Your answer').focus();
    await typeOn(page, 'turqu');
    await post('asked-twice', 'large', { to: ['lead'] });
    await first.getByText('large').waitFor();
    await typeOn(page, 'oise');
    const kept = page.getByLabel('Your answer, not sent');
    await expect.poll(() => kept.inputValue()).toBe('turquoise');
    expect(await draft(page)).toBe('');
    expect(await textOf(page.getByRole('alert'))).toMatch(/Your text is at this question/);
    await page.locator('.ask-card', { hasText: 'Which form?' }).getByLabel('Your answer').fill('oval');
    await page.keyboard.press('Enter');
    await expect.poll(() => draft(page)).toBe('turquoise');
    expect(await kept.count()).toBe(0);
    expect(await textOf(page.getByRole('alert'))).toMatch(/Your text is in the message field/);
    await page.getByLabel('Message').fill(''); // and so is the notice
    await expect.poll(() => page.getByRole('alert').count(), { timeout: 5_000 }).toBe(0);
  });

  itLong(
    'a reason that a person types stays at its call when the turn is stopped, and no message has it (KEPT-1)',
    async () => {
      const page = await stage.begin('stopped', 'write it');
      await page.getByLabel('Reason', { exact: true }).focus();
      await typeOn(page, 'not now');
      await stage.api('POST', 'conversations/stopped/stop', { publisher: 'alice' });
      await page.getByLabel('Reason', { exact: true }).waitFor({ state: 'detached' });
      const kept = page.getByLabel('Your reason, not sent');
      await expect.poll(() => kept.inputValue()).toBe('not now');
      expect(await draft(page)).toBe('');
    },
  );

  itLong(
    'a reason stays where it was written when another person answers, over a reload, until it is dismissed (KEPT-1)',
    async () => {
      const page = await stage.begin('overtaken', 'write it');
      await page.getByLabel('Reason').focus();
      await typeOn(page, 'not on a Fr');
      const { approvals } = await stage.api<{ approvals: { approvalId: string }[] }>(
        'GET',
        'conversations/overtaken/approvals',
      );
      const first = { answer: 'approve', author: { name: 'Zoë' }, publisher: 'alice' };
      await stage.api('POST', `approvals/${approvals[0]?.approvalId}`, first);
      await page.getByText('Approved by Zoë').waitFor();
      await typeOn(page, 'iday');
      const kept = page.getByLabel('Your reason, not sent');
      await expect.poll(() => kept.inputValue()).toBe('not on a Friday');
      await page.reload();
      await expect.poll(() => kept.inputValue()).toBe('not on a Friday');
      expect(await draft(page)).toBe('');
      await page.locator('.call').getByRole('button', { name: 'Dismiss' }).click();
      await kept.waitFor({ state: 'detached' });
      await page.reload();
      await page.getByText('Approved by Zoë').waitFor();
      expect(await kept.count()).toBe(0);
    },
  );

  itLong(
    'a reason that a person types in the inbox is at its call when another person answers (KEPT-1)',
    async () => {
      await post('away', 'write it from away');
      const page = await stage.look('#/inbox');
      const item = await openItem(page, 'from away');
      await page.setViewportSize({ width: 1_280, height: 240 });
      await item.getByLabel('Reason').fill('not so');
      const { approvals } = await stage.api<{ approvals: { approvalId: string }[] }>(
        'GET',
        'conversations/away/approvals',
      );
      await stage.api('POST', `approvals/${approvals[0]?.approvalId}`, {
        answer: 'deny',
        publisher: 'alice',
      });
      const over = item.getByText('alice denied this call first. Your text is kept in its conversation.');
      await over.waitFor();
      expect(await item.getByText('May this call run?').count()).toBe(0);
      expect(await item.getByText('alice denied this call first.').count()).toBe(1); // it is said once
      expect(await textOf(inboxItem(page, 'from away').locator('.kind'))).toBe('Answered');
      const { y = 0, height = 0 } = (await over.boundingBox()) ?? {};
      expect(y + height).toBeLessThanOrEqual(240); // in sight
      expect(await item.getByRole('button', { name: 'Approve' }).isEnabled()).toBe(false);
      expect(await page.getByText('Nothing needs you.').count()).toBe(0); // what is kept would cover it
      await typeOn(page, ' fast');
      await page.keyboard.press('Escape');
      await item.waitFor({ state: 'detached' });
      expect(await textOf(page.getByRole('alert'))).toMatch(
        /from away: alice denied this call first. Your text is at this call in its conversation/,
      );
      await page.evaluate("location.hash = '#/c/away'");
      await expect.poll(() => page.getByLabel('Your reason, not sent').inputValue()).toBe('not so fast');
      expect(await draft(page)).toBe('');
    },
  );

  itLong(
    'an answer that a person types in the inbox is in the message field of its conversation (KEPT-1)',
    async () => {
      await post('far', 'ask me from afar');
      const page = await stage.look('#/inbox');
      const item = await openItem(page, 'from afar');
      await item.getByLabel('Your answer').focus();
      await typeOn(page, 'violet, if poss');
      await post('far', 'red', { to: ['lead'] });
      await item.getByText('alice answered first: “red”. Your text is kept in its conversation.').waitFor();
      expect(await textOf(inboxItem(page, 'from afar').locator('.kind'))).toBe('Answered');
      await typeOn(page, 'ible');
      await page.keyboard.press('Enter'); // as a click on its button, it posts nothing
      for (const name of ['Answer', 'red', 'blue'])
        expect(await item.getByRole('button', { name, exact: true }).isEnabled()).toBe(false);
      expect(await item.getByLabel('Your answer').inputValue()).toBe('violet, if possible');
      await page.keyboard.press('Escape');
      expect(await textOf(page.getByRole('alert'))).toMatch(
        /alice answered first: “red”. Your text is in the message field of its conversation/,
      );
      expect(page.url()).toMatch(/#\/inbox$/);
      await page.evaluate("location.hash = '#/c/far'");
      await message(page, 'So it is red.').waitFor();
      await expect.poll(() => draft(page)).toBe('violet, if possible');
      expect(await message(page, 'violet').count()).toBe(0);
    },
  );

  itLong(
    'an answer in the inbox to one of two questions stays there when another person answers it, and the row of a stopped turn says that it waits no longer (KEPT-1)',
    async () => {
      await post('pair', 'ask both, a pair');
      const page = await stage.look('#/inbox');
      const first = inboxItem(page, 'a pair').filter({ hasText: 'Which size?' });
      await first.locator('.inbox-line').click();
      await first.getByLabel('Your answer').fill('tiny');
      await post('pair', 'large', { to: ['lead'] });
      await first
        .getByText('alice answered first: “large”. Your text is kept in its conversation.')
        .waitFor();
      await page.keyboard.press('Escape');
      await page
        .getByRole('alert')
        .getByText('Your text is at this call in its conversation.', { exact: false })
        .waitFor();
      const second = inboxItem(page, 'a pair').filter({ hasText: 'Which form?' });
      await second.locator('.inbox-line').click();
      await second.getByLabel('Your answer').fill('oval');
      await stage.api('POST', 'conversations/pair/stop', { publisher: 'alice' });
      await second
        .getByText('This no longer waits for an answer. Your text is kept in its conversation.')
        .waitFor();
      expect(await textOf(second.locator('.kind'))).toBe('No longer waits');
    },
  );

  itLong(
    'an answer that is being sent is kept, also if the page is loaded again meanwhile (KEPT-1)',
    async () => {
      const page = await stage.begin('held', 'ask me');
      const held: { abort(): Promise<void> }[] = [];
      await page.route('**/messages', (route) => void held.push(route)); // the daemon does not answer
      await page.getByLabel('Your answer').fill('a long answer');
      await page.getByLabel('Your answer').press('Enter');
      await expect.poll(() => held.length).toBe(1);
      expect(await page.evaluate('Object.values(sessionStorage)')).toContain('a long answer'); // a crash would lose it
      await page.reload();
      await expect.poll(() => page.getByLabel('Your answer').inputValue()).toBe('a long answer');
      for (const route of held) await route.abort().catch(() => undefined);
    },
  );

  itLong('a reason that was sent after the answer of another person stays at its call (KEPT-1)', async () => {
    const page = await stage.begin('second', 'write it');
    await page.route('**/approvals/*', async (route) => {
      const first = { answer: 'deny', author: { name: 'Zoë' }, publisher: 'alice' };
      await stage.api('POST', new URL(route.request().url()).pathname.slice('/api/'.length), first);
      await page.getByLabel('Reason').waitFor({ state: 'detached' });
      await route.continue();
    });
    await page.getByLabel('Reason').fill('it is too early');
    await page.getByRole('button', { name: 'Deny' }).click();
    expect(await textOf(page.getByRole('alert'))).toContain('Zoë denied this call first.');
    await expect.poll(() => page.getByLabel('Your reason, not sent').inputValue()).toBe('it is too early');
    expect(await draft(page)).toBe('');
    await stage.endOfTest(/status of 4\d\d/);
  });

  itLong('an own answer, and edited arguments that are the same, move nowhere', async () => {
    const page = await stage.begin('own', 'ask me, then write');
    await page.getByLabel('Your answer').fill('green');
    await page.getByLabel('Your answer').press('Enter');
    await message(page, 'So it is green.').waitFor();
    await post('own', 'write it');
    await page.getByRole('button', { name: 'Edit arguments' }).click();
    await page.getByLabel('New path').waitFor();
    await stage.api('POST', 'conversations/own/stop', { publisher: 'alice' });
    await page.getByLabel('New path').waitFor({ state: 'detached' });
    expect(await draft(page)).toBe('');
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});
