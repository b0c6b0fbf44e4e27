import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { scriptedSettings } from '../support/project.ts';
import { message, openItem, sharedStage, textOf, write } from './support.ts';

const SETTINGS = { approvals: { ownRequests: true } };

describe.skipIf(chromiumPath === null)('what the console advises', () => {
  const stage = sharedStage();

  const post = (conversation: string, content: string) =>
    stage.api('POST', `conversations/${conversation}/messages`, { content });
  const reload = async (settings: object) => {
    await writeFile(
      join(stage.project.config, 'parley.yaml'),
      JSON.stringify(scriptedSettings({ ...SETTINGS, ...settings })),
    );
    await stage.api('POST', 'reload', {});
  };

  it('a limit of the conversation names its key and a new conversation, and Resume comes last and works after a reload', async () => {
    await reload({ limits: { tokensPerConversation: 1_000 } });
    await post('spent', 'hello');
    const page = await stage.look('#/c/spent');
    const failed = page.locator('article.fault', { hasText: 'This turn' });
    const advice =
      /Another try fails until this is fixed\. .*limits\.tokensPerConversation in parley\.yaml.* parley reload\. Or start a new conversation\./;
    expect(await textOf(failed)).toMatch(advice);
    expect(await failed.locator('.buttons > button').allInnerTexts()).toEqual(['Resume']);
    expect(await textOf(page.locator('article.fault', { hasText: 'A limit was reached' }))).toMatch(
      /the next call may take it to \d+,\d{3}; the limit is 1,000/,
    );
    await page.evaluate("location.hash = '#/inbox'");
    const item = await openItem(page, 'hello');
    await expect.poll(() => textOf(item)).toMatch(advice);
    expect(await textOf(item)).toMatch(/the limit is 1,000 tokensPerConversation/);
    await reload({});
    await item.getByRole('button', { name: 'Resume' }).click();
    await page.evaluate("location.hash = '#/c/spent'");
    await message(page, 'Noted: ').waitFor();
  });
  it('a message to an agent that waits for an approval says when the agent reads it', async () => {
    await post('later', 'write it');
    const page = await stage.look('#/c/later');
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await write(page, 'And be quick.');
    const late = page.locator('article.by-person', { hasText: 'And be quick.' });
    await late.getByText('Lena Lead reads this after the approval.').waitFor();
    await page.getByRole('button', { name: 'Approve' }).click();
    await message(page, 'Noted: ').waitFor();
    expect(await late.innerText()).not.toContain('reads this');
  });
});
