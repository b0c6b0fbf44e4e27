import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { on } from '../support/route-rules.ts';
import { inboxItem, message, pressAlone, sharedStage, textOf, write } from './support.ts';
import { RULES } from './team.ts';

/** What the console shows and keeps while the daemon does not answer. */
describe.skipIf(chromiumPath === null)('the console of a daemon that was killed', () => {
  const stage = sharedStage(() => {
    const long = on('/at length/', { text: `First ${'word '.repeat(600)}`, delayMs: 25 });
    return { script: [long, ...RULES] };
  }, /net::ERR_|status of 503/);

  const { post } = stage;
  const contentsOf = async (conversation: string) => {
    const { entries } = await stage.api<{ entries: { content?: string; author: { kind: string } }[] }>(
      'GET',
      `conversations/${conversation}/entries`,
    );
    return entries.filter(({ author }) => author.kind === 'person').map(({ content }) => content);
  };

  itLong('a page that follows late shows a message from its beginning while it is written', async () => {
    const page = await stage.look('#/new');
    await write(page, 'write at length');
    const draft = page.locator('.draft .prose');
    await expect.poll(() => draft.innerText()).toMatch(/^First word/);
    await page.reload();
    await expect.poll(() => draft.innerText()).toMatch(/^First word/);
  });

  itLong(
    'a text that is being written stays, marked as interrupted, until the daemon answers again',
    async () => {
      await post('torn', 'write at length');
      const other = await stage.look('#/');
      await other.locator('.row').first().waitFor();
      const page = await stage.look('#/c/torn');
      const draft = page.locator('.draft .prose');
      await expect.poll(() => draft.innerText()).toMatch(/^First word/);
      await stage.kill();
      const torn = page.locator('article.interrupted');
      expect(await textOf(torn)).toMatch(/was interrupted: the daemon does not answer.*First word/s);
      expect(await draft.count()).toBe(0);
      await other.evaluate("location.hash = '#/c/torn'");
      await other.getByText('Not loaded: the daemon does not answer.').waitFor();
      await stage.restart();
      await message(other, 'write at length').waitFor({ timeout: 20_000 });
      expect(await other.getByText('Not loaded').count()).toBe(0);
      await torn.waitFor({ state: 'detached' });
    },
  );

  itLong('an inbox that was opened meanwhile shows what waits in full when the daemon answers', async () => {
    const page = await stage.begin('asks', 'ask me');
    await page.getByText('Which colour?').first().waitFor();
    await stage.kill();
    await page.getByText('Not connected. Trying again…').waitFor();
    await page.evaluate("location.hash = '#/inbox'");
    await page.locator('.detail').getByText('The daemon does not answer.').waitFor();
    expect(await page.getByText('Open the conversation to answer.').count()).toBe(0);
    await stage.restart();
    await page.getByLabel('Your answer').waitFor();
    await page.locator('.inbox-line').filter({ hasText: 'Which colour?' }).waitFor();
  });

  itLong('a conversation that is begun meanwhile says that it begins when the daemon answers', async () => {
    const page = await stage.look('#/new');
    await page.getByLabel('Message').waitFor();
    await stage.kill();
    await page.getByText('Not connected. Trying again…').waitFor();
    await write(page, 'a new topic');
    await page.getByText('This conversation begins when the daemon answers.').waitFor();
    expect(await page.getByText('Not loaded').count()).toBe(0);
    await stage.restart();
    await message(page, 'Noted: a new topic').waitFor({ timeout: 20_000 });
  });

  it('posts to a killed daemon are kept, and appended once and in order after its restart', async () => {
    const page = await stage.begin('away', 'hello', 'Noted: hello');
    await stage.kill();
    await page.getByText('Not connected. Trying again…').waitFor();
    await write(page, 'first while away');
    await write(page, 'second while away');
    await expect.poll(() => page.getByLabel('Message').inputValue()).toBe('');
    const kept = page.locator('.kept-posts li');
    await expect.poll(() => kept.count()).toBe(2);
    expect(await textOf(page.locator('.away'))).toContain('2 messages are sent when the daemon answers');
    await page.locator('.row', { hasText: 'hello' }).getByText('waits to be sent').waitFor();
    expect(await page.locator('body').innerText()).not.toMatch(/Failed to fetch|NetworkError/);
    expect(await page.getByRole('alert').count()).toBe(0);
    await stage.restart();
    await message(page, 'Noted: second while away').waitFor({ timeout: 20_000 });
    await page.locator('.away').waitFor({ state: 'detached' });
    await expect.poll(() => kept.count()).toBe(0);
    expect(await contentsOf('away')).toEqual(['hello', 'first while away', 'second while away']);
  });

  itLong(
    'a message that the log has is not called unsent when its conversation is opened again meanwhile',
    async () => {
      const page = await stage.look('#/new');
      await write(page, 'hello once');
      await message(page, 'Noted: hello once').waitFor();
      const address = await page.evaluate<string>('location.hash');
      await page.locator('.row', { hasText: 'hello once' }).locator('time').waitFor();
      await stage.kill();
      await page.getByText('Not connected. Trying again…').waitFor();
      await page.evaluate("location.hash = '#/system'");
      await page.getByRole('heading', { name: 'Team and system' }).waitFor();
      await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
      await page.getByText('Not loaded: the daemon does not answer.').waitFor();
      expect(await page.getByText('sending…').count()).toBe(0);
      await stage.restart();
      await message(page, 'Noted: hello once').waitFor({ timeout: 20_000 });
    },
  );

  itLong(
    'an approval to a killed daemon is refused on the line that says so, and can be given after its restart',
    async () => {
      const page = await stage.begin('approves', 'write it');
      const approve = page.getByRole('button', { name: 'Approve' });
      await approve.waitFor();
      await stage.kill();
      const line = page.locator('.away');
      await line.waitFor();
      await approve.click();
      await line.filter({ hasText: 'Your last action was not confirmed' }).waitFor();
      expect(await page.getByRole('alert').count()).toBe(0);
      await stage.restart();
      await line.waitFor({ state: 'detached', timeout: 20_000 });
      expect(await textOf(page.getByRole('alert'))).toContain('Your last action was not confirmed');
      await approve.click();
      await message(page, 'That is what came of it').waitFor();
      await page.getByRole('alert').waitFor({ state: 'detached' });
    },
  );

  itLong('calls stay in an open inbox, which says that they can be answered later', async () => {
    await stage.post('kept-open', 'write it');
    const page = await stage.look('#/inbox');
    const entry = inboxItem(page, 'write it');
    await entry.locator('.inbox-line').click();
    await entry.locator('.whole-call').waitFor();
    await entry.getByLabel('Reason').fill('half a reason');
    const line = await textOf(entry.locator('.summary'));
    expect(line).not.toBe('');
    await stage.kill();
    await entry.getByText('It can be answered when the daemon answers again.').waitFor();
    await page.evaluate('fetch("/api/none").catch(() => null)'); // refused, as those of the page were
    expect(await textOf(entry.locator('.summary'))).toBe(line);
    expect(await entry.locator('.whole-call').isVisible()).toBe(true);
    expect(await entry.getByLabel('Reason').inputValue()).toBe('half a reason');
    await stage.restart();
    await entry.getByText('It can be answered').waitFor({ state: 'detached', timeout: 20_000 });
    await entry.getByRole('button', { name: 'Deny' }).click();
    await entry.waitFor({ state: 'detached' });
  });

  itLong(
    'a call whose file was not read before an outage is answered once it is read, and is not called outdated',
    async () => {
      await stage.post('unread', 'write it, unread');
      const page = await stage.look('#/inbox');
      const entry = inboxItem(page, 'write it, unread');
      await entry.locator('.summary', { hasText: 'fs_write' }).waitFor();
      await page.route('**/approvals/*/change', (route) => route.abort()); // it may be the chosen one
      await page.reload();
      await entry.locator('.summary', { hasText: 'fs_write' }).waitFor();
      await stage.kill();
      await page.getByText('Not connected. Trying again…').waitFor();
      await entry.locator('.inbox-line').click();
      const approve = entry.getByRole('button', { name: 'Approve' });
      await entry.getByText('No difference can be shown: The daemon does not answer.').waitFor();
      await page.keyboard.press('ArrowUp');
      await entry.focus();
      await pressAlone(page, 'a');
      expect(await approve.count()).toBe(0); // nothing was read that it could approve
      await page.unroute('**/approvals/*/change');
      await stage.restart();
      await entry.locator('.ask-card.seen').waitFor({ timeout: 20_000 });
      expect(await approve.isEnabled()).toBe(true);
      expect(await entry.getByText('The file has changed').count()).toBe(0);
      expect(await entry.getByRole('button', { name: 'Read on to answer' }).count()).toBe(0);
      expect(await entry.getByRole('button', { name: 'Allow for this conversation' }).isEnabled()).toBe(true);
      await approve.click();
      await entry.waitFor({ state: 'detached' });
    },
  );

  itLong(
    'a post whose answer was lost is sent again with its id after a reload, and appended once',
    async () => {
      const page = await stage.begin('unanswered', 'hello', 'Noted: hello');
      const ids: string[] = [];
      await page.route('**/messages', async (route) => {
        ids.push(route.request().postDataJSON().id);
        if (ids.length === 1) await route.fetch();
        await route.abort();
      });
      await write(page, 'did it arrive?');
      await message(page, 'Noted: did it arrive?').waitFor();
      await page.locator('.kept-posts li', { hasText: 'did it arrive?' }).waitFor();
      await page.reload();
      await page.locator('.kept-posts li', { hasText: 'did it arrive?' }).waitFor();
      await page.unroute('**/messages');
      await page.locator('.kept-posts').waitFor({ state: 'detached' });
      expect(new Set(ids).size).toBe(1);
      expect(await contentsOf('unanswered')).toEqual(['hello', 'did it arrive?']);
      expect(await page.evaluate('sessionStorage.getItem("parley.outbox")')).toBe(null);
    },
  );

  itLong('a kept post that is refused later says why, and can be sent again or discarded', async () => {
    const page = await stage.begin('late', 'hello', 'Noted: hello');
    let isRefused = false;
    await page.route('**/messages', (route) =>
      isRefused
        ? route.fulfill({ status: 409, json: { code: 'TOO_LATE', detail: 'it is too late', hint: '' } })
        : route.abort(),
    );
    await write(page, 'one');
    await write(page, 'two');
    const kept = page.locator('.kept-posts li');
    await expect.poll(() => kept.count()).toBe(2);
    isRefused = true;
    const refused = kept.filter({ hasText: 'Not sent: it is too late' });
    await expect.poll(() => refused.count(), { timeout: 10_000 }).toBe(2);
    await kept.filter({ hasText: 'one' }).getByRole('button', { name: 'Discard' }).click();
    await page.unroute('**/messages');
    await kept.filter({ hasText: 'two' }).getByRole('button', { name: 'Send again' }).click();
    await message(page, 'Noted: two').waitFor();
    expect(await contentsOf('late')).toEqual(['hello', 'two']);
    await stage.endOfTest(/net::ERR_|status of 409/);
  });

  itLong(
    'a first post to a killed daemon opens the conversation, which begins after the restart',
    async () => {
      const page = await stage.look('#/new');
      await page.getByLabel('Message').waitFor();
      await stage.kill();
      await page.getByText('Not connected. Trying again…').waitFor();
      await write(page, 'begin later');
      await page.locator('.kept-posts li', { hasText: 'begin later' }).waitFor();
      await stage.restart();
      await message(page, 'Noted: begin later').waitFor({ timeout: 20_000 });
      expect(await contentsOf(page.url().split('/').at(-1) ?? '')).toEqual(['begin later']);
    },
  );
});
