import { beforeAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { hasLongTests } from '../support/runs.ts';
import { message, sharedStage, textOf, write } from './support.ts';

const ROLES = {
  read: 'reads-it-and-more',
  post: 'posts-it-and-more',
  approve: 'approves-it-all-of-it',
  operate: 'operates-it-all-of-it',
};

describe.skipIf(chromiumPath === null)('the console of a daemon with tokens', () => {
  const stage = sharedStage(
    {
      settings: { http: { publishers: { post: 'alice' } } },
      env: Object.fromEntries(
        Object.entries(ROLES).map(([role, token]) => [`PARLEY_HTTP_TOKENS_${role.toUpperCase()}`, token]),
      ),
      token: ROLES.operate,
    },
    /status of (?:401|409)/,
  );
  beforeAll(async () => {
    await stage.api('POST', 'conversations/calls/messages', { content: 'write it' });
    await stage.api('POST', 'conversations/asked/messages', { content: 'ask me' });
  });

  const enter = async (role: keyof typeof ROLES, hash: string) => {
    const page = await stage.look(hash);
    await page.getByLabel('This daemon requires a token').fill(ROLES[role]);
    await page.keyboard.press('Enter');
    await page.locator('.composer').waitFor();
    return page;
  };

  it.each(hasLongTests ? (['read', 'post', 'approve'] as const) : (['post'] as const))(
    'a token with the role %s has no control that the daemon would refuse',
    async (role) => {
      const page = await enter(role, '#/c/calls');
      await page.locator('.ask-card').waitFor();
      const count = (name: string) => page.getByRole('button', { name, exact: true }).count();
      expect(await count('Stop')).toBe(0);
      expect(await page.locator('.controls select').count()).toBe(0);
      await page.getByTitle('Phase and mode: who answers').click();
      expect(await textOf(page.locator('.settings'))).toMatch(/Phase\s+chat[\s\S]*Mode\s+agent/);
      await page.keyboard.press('Escape');
      await page.keyboard.press('Control+k');
      await page.keyboard.type('>this conversation');
      await page.getByRole('option', { name: 'Pin or mark this conversation…' }).waitFor();
      await page.keyboard.press('Escape');
      await expect.poll(() => count('Approve')).toBe(role === 'approve' ? 1 : 0); // once the file is read
      expect(await count('Allow for this conversation')).toBe(0);
      expect(await page.getByText('Your token may not answer this.').count()).toBe(
        role === 'approve' ? 0 : 1,
      );
      await expect.poll(() => textOf(page.locator('.inbox-link .count'))).toBe(role === 'read' ? '0' : '1'); // of the approval and the question, what it may answer
      expect(await page.getByLabel('Message', { exact: true }).count()).toBe(role === 'post' ? 1 : 0);
      expect(await page.locator('button.chip').count()).toBe(role === 'post' ? 2 : 0);
      expect(await page.getByRole('link', { name: 'New conversation' }).count()).toBe(
        role === 'post' ? 1 : 0,
      );
      if (role === 'post') {
        await page.locator('button.chip').first().click();
        expect(await page.locator('.menu-list:popover-open button').allInnerTexts()).toEqual([
          'Write to @dev',
        ]);
      }
      await page.evaluate("location.hash = '#/inbox'");
      const mine = page.getByRole('list', { name: 'What needs you' }).locator('.inbox-entry');
      const others = page.getByRole('list', { name: 'What waits for others' }).locator('.inbox-entry');
      await page.getByText(`Waits for others (${role === 'read' ? 2 : 1})`).waitFor();
      expect(await mine.count()).toBe(role === 'read' ? 0 : 1);
      expect(await others.first().isVisible()).toBe(false);
      await page.getByText('Waits for others').click();
      await others.first().locator('.inbox-line').click();
      expect(await textOf(others.first().locator('.detail'))).toMatch(
        role === 'approve'
          ? 'Your token may not answer this. A token with the role post or operate may.'
          : 'Your token may not answer this. A token with the role approve or operate may.',
      );
      await page.evaluate("location.hash = '#/c/asked'");
      await page.locator('.question').waitFor();
      expect(await count('blue')).toBe(role === 'post' ? 1 : 0);
    },
  );

  itLong('a deleted conversation offers a new one only to a person who may post', async () => {
    for (const role of ['read', 'post'] as const) {
      await stage.api('POST', `conversations/gone-${role}/messages`, { content: 'hello' });
      const page = await enter(role, `#/c/gone-${role}`);
      await message(page, 'Noted: hello').waitFor();
      await stage.api('DELETE', `conversations/gone-${role}`);
      const said = page.getByText('This conversation was deleted.');
      const next = role === 'post' ? ' Your next message begins a new one.' : '';
      expect(await textOf(said)).toBe(`This conversation was deleted.${next}`);
    }
  });

  itLong('a reason that was not sent is shown to a person who may approve and not post', async () => {
    await stage.api('POST', 'conversations/late/messages', { content: 'write it' });
    const page = await enter('approve', '#/c/late');
    await page.getByLabel('Reason').fill('only this time');
    const { approvals } = await stage.api<{ approvals: { approvalId: string }[] }>(
      'GET',
      'conversations/late/approvals',
    );
    await stage.api('POST', `approvals/${approvals[0]?.approvalId}`, { answer: 'deny' });
    await page.getByText('Denied by').waitFor();
    await expect.poll(() => page.getByLabel('Your reason, not sent').inputValue()).toBe('only this time');
  });

  it('the console requests nothing before it has a token, with which the browser signs in', async () => {
    await stage.api('POST', 'conversations/demo/messages', { content: 'hello' });
    const page = await stage.look('#/c/demo');
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('token');
    await page.keyboard.type('wrong');
    await page.keyboard.press('Enter');
    expect(await textOf(page.getByRole('alert'))).toMatch(/has no such token/);
    await page.getByLabel('This daemon requires a token').fill(ROLES.post);
    await page.keyboard.press('Enter');
    await message(page, 'Noted: hello').waitFor();
    await write(page, 'with a token');
    await message(page, 'Noted: with a token').waitFor();
    await page.reload();
    await message(page, 'Noted: with a token').waitFor();
    const { entries } = await stage.api<{ entries: { author: { id: string }; content?: string }[] }>(
      'GET',
      'conversations/demo/entries',
    );
    expect(entries.find(({ content }) => content === 'with a token')?.author.id).toBe('alice');
    expect(await page.evaluate('Object.keys(localStorage).sort().join()')).toBe(
      'parley.seen,parley.session,parley.signed',
    );
    expect(await page.evaluate('localStorage.getItem("parley.signed")')).toBe('["alice"]');
    expect(await page.evaluate('localStorage.getItem("parley.seen")')).not.toContain('posts-it');
    expect(await page.evaluate('document.cookie')).toBe('');
    const reader = await stage.look('#/c/demo');
    await reader.getByLabel('This daemon requires a token').fill(ROLES.read);
    await reader.keyboard.press('Enter');
    await reader
      .getByText('Your token may read but not post. A token with the role post or operate may.')
      .waitFor();
  });

  it('a person without operator rights sees the explanation of an answer, and no control to fork', async () => {
    await stage.api('POST', 'conversations/explained/messages', { content: 'hello' });
    const page = await enter('post', '#/c/explained');
    await message(page, 'Noted: hello').waitFor();
    expect(await page.getByRole('link', { name: 'Fork' }).count()).toBe(0);
    await page.locator('a.why').last().click();
    await page.locator('.account').waitFor();
    expect(await page.getByRole('link', { name: /Fork|What if/ }).count()).toBe(0);
    await page.evaluate("location.hash = '#/c/explained/fork/1'");
    await page
      .getByText('Your token may not fork a conversation. A token with the role operate may.')
      .waitFor();
    await page.evaluate("location.hash = '#/c/explained/what-if/2'");
    await page.getByText('Your token may not start a what-if.').waitFor();
  });
});
