import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { scriptedSettings } from '../support/project.ts';
import { on } from '../support/route-rules.ts';
import { message, openItem, sharedStage, textOf, write } from './support.ts';
import { RULES } from './team.ts';

const SETTINGS = { approvals: { ownRequests: true } };

describe.skipIf(chromiumPath === null)('what the console advises', () => {
  const refused = { code: 'UNAUTHORIZED', message: 'The key is wrong.' };
  const stage = sharedStage({
    script: [
      on('/use the key/', { text: '', error: refused }),
      on('/overdose/', { text: '', error: { status: 400, message: 'Please rephrase it.' } }),
      ...RULES,
    ],
  });

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
  it('a turn that ended at a limit is closed after another agent was asked, in the thread and in the inbox', async () => {
    await reload({ limits: { modelCallsPerTurn: 1 } });
    await post('passed', 'read it, for long');
    const page = await stage.look('#/inbox');
    const item = await openItem(page, 'for long');
    await item.getByText('limits.modelCallsPerTurn').waitFor();
    expect(await item.locator('.buttons > button').allInnerTexts()).toEqual([
      'Resume',
      'Ask another agent',
      'Dismiss',
    ]);
    const resume = item.getByRole('button', { name: 'Resume' });
    expect(await resume.getAttribute('title')).toBe('Gives Lena Lead a new turn');
    await item.getByRole('button', { name: 'Ask another agent' }).click();
    await item.getByRole('button', { name: /Dev/ }).click();
    await item.waitFor({ state: 'detached' });
    expect(await textOf(page.getByRole('alert'))).toBe('Asked Dev <b>Ops</b> to continue: read it, for long');
    await page.getByRole('alert').getByRole('link').click();
    await expect.poll(() => page.url()).toMatch(/#\/c\/passed$/);
    const ended = page.locator('article.fault', { hasText: 'This turn ended at a limit' });
    await ended.getByText(/Continued by Dev/).waitFor();
    expect(await ended.getByRole('button').count()).toBe(1);
    const { conversations } = await stage.api<{ conversations: { id: string; limited: string[] }[] }>(
      'GET',
      'conversations',
    );
    expect(conversations.find(({ id }) => id === 'passed')?.limited).toEqual([]);
    await reload({});
  });
  it('a refused key is that of the model that was asked: of a hired agent, and of a fallback', async () => {
    await post('hiring', 'hello');
    await stage.api('POST', 'conversations/hiring/hire', {
      ...{ slug: 'temp', name: 'Tess', description: 'helps', persona: 'You help.', publisher: 'alice' },
    });
    await post('hiring', '@temp use the key');
    const page = await stage.look('#/c/hiring');
    const failed = page.locator('article.fault', { hasText: 'This turn failed' });
    expect(await textOf(failed)).toMatch(/Check models\.default\.apiKey in parley\.yaml/);
    const scripted = { provider: 'scripted', script: 'script.yaml' };
    await reload({ models: { default: { ...scripted, fallback: ['spare'] }, spare: scripted } });
    await post('fallen', 'use the key');
    await page.evaluate("location.hash = '#/inbox'");
    const item = await openItem(page, 'use the key');
    await item.getByText(/Check models\.spare\.apiKey in parley\.yaml/).waitFor();
    await reload({});
  });
  it('a request that the provider refused may have been refused for its words', async () => {
    await post('refused', 'overdose');
    const page = await stage.look('#/c/refused');
    const failed = page.locator('article.fault', { hasText: 'This turn failed' });
    expect(await textOf(failed)).toMatch(/If the provider refuses what was written, ask in other words\./);
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
