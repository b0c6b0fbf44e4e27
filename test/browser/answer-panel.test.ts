import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { ask } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import type { Project } from '../support/project.ts';
import { message, sharedStage, textOf } from './support.ts';

/** The panel about an answer, in a conversation whose agent was edited between its turns. */

const HOSTILE = '<img src=x onerror="globalThis.ran=1"><script>globalThis.ran=1</script>';
const PERSONA = ['You lead a team.', 'Answer at length, with every detail.', 'Never guess.'];
const EDITED = ['You lead a team.', 'Answer in one line, with every detail.', HOSTILE, 'Never guess.'];

const agentFile = (persona: readonly string[], tools: string) =>
  `---\nname: Lena Lead\ndescription: leads\ntools: [${tools}]\n---\n${persona.join('\n')}\n`;

const MODELS = {
  default: { provider: 'scripted', script: 'script.yaml' },
  other: { provider: 'scripted', script: 'other.yaml' },
};
const OTHER = { rules: [{ reply: { text: `Other: {{last}} ${HOSTILE}` } }] };

/** One turn with the first definition, and two with the edited one. */
async function tellStory(project: Project): Promise<void> {
  for (const posts of [['first'], ['second', 'third']]) {
    const daemon = await project.up();
    const client = await project.connect();
    for (const content of posts) await ask(client, 'edited', content);
    await daemon.stop();
    await writeFile(join(project.config, 'agents', 'lead.md'), agentFile(EDITED, 'ask, fs_read'));
  }
}

describe.skipIf(chromiumPath === null)('the panel about an answer', () => {
  const stage = sharedStage({
    settings: { models: MODELS },
    agents: { lead: agentFile(PERSONA, 'ask') },
    files: { 'other.yaml': OTHER },
    before: tellStory,
  });

  const openPanel = async (page: Page, text: string) => {
    await message(page, text).hover();
    await message(page, text).getByRole('link', { name: 'Why did' }).click();
    await page.locator('.account').waitFor();
    return page.locator('.answer-panel');
  };

  it('the panel names the parts that changed since the previous turn, and shows their changed lines as text', async () => {
    const page = await stage.look('#/c/edited');
    const panel = await openPanel(page, 'Noted: second');
    expect(await textOf(panel.locator('.changed-note'))).toMatch(
      /^Changed since the previous turn, at entry 1: agent, persona, policy, tool\.fs_read$/,
    );
    const lines = panel.locator('.part-changes > li', { hasText: 'persona' }).locator('.line');
    await expect
      .poll(() => lines.allTextContents())
      .toEqual([
        'You lead a team.',
        'removed: Answer at length, with every detail.',
        'added: Answer in one line, with every detail.',
        `added: ${HOSTILE}`,
        'Never guess.',
      ]);
    expect(await lines.locator('mark').allInnerTexts()).toEqual(['at length', 'in one line']);
    expect(await panel.locator('.part-changes .added .line').first().textContent()).toContain('{');
    expect(await page.locator('#console img, #console script').count()).toBe(0);
    expect(await page.evaluate('globalThis.ran')).toBeUndefined();
  });

  itLong(
    'a person compares the definition of an answer with that of any other turn, and of today',
    async () => {
      const page = await stage.look('#/c/edited');
      const panel = await openPanel(page, 'Noted: third');
      await panel.getByText('Same definition as the previous turn, at entry 6').waitFor();
      const choice = panel.getByLabel('Compare with');
      await choice.selectOption('1');
      await panel
        .getByText('Differs from the turn at entry 1: agent, persona, policy, tool.fs_read')
        .waitFor();
      await choice.selectOption('next');
      await panel.getByText('Same definition as the next turn.').waitFor();
      await panel.getByRole('button', { name: 'Close' }).click();
      await openPanel(page, 'Noted: first');
      await panel.getByText('This was the first turn of the agent.').waitFor();
    },
  );

  it('an operator forks from an answer in the console, gets refusals in the form, and then sees the copy', async () => {
    const page = await stage.look('#/c/edited');
    const panel = await openPanel(page, 'Noted: second');
    await panel.getByRole('link', { name: 'Fork from here' }).click();
    await expect.poll(() => textOf(panel)).toContain('a copy of the entries 0 to 8');
    const field = panel.getByLabel('Title of the new conversation');
    expect(await field.inputValue()).toBe('first (copy)');
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('INPUT');
    expect(await page.evaluate('getSelection().toString()')).toBe('first (copy)'); // typed words replace it
    await page.route('**/label', (route) => route.abort(), { times: 1 });
    await field.press('Enter');
    expect(await textOf(panel.getByRole('alert'))).toContain('The daemon does not answer');
    await field.fill('another path');
    await panel.getByRole('button', { name: 'Fork' }).click();
    await expect.poll(() => page.url()).toMatch(/#\/c\/[0-9a-f]{32}$/);
    await page.getByRole('heading', { name: 'another path' }).waitFor();
    const id = page.url().replace(/.*\//, '');
    await message(page, 'Noted: second').waitFor();
    expect(await page.locator('article.message', { hasText: 'third' }).count()).toBe(0);
    expect(await stage.api('GET', `conversations/${id}`)).toMatchObject({ length: 11 }); // with its title
    expect(await page.locator('.row', { hasText: 'another path' }).count()).toBe(1); // the refused try made no other
    const origin = page.locator('.band-title', { hasText: 'forked from' }).getByRole('link');
    expect(await origin.getAttribute('href')).toBe('#/c/edited/entry/8');
    await stage.endOfTest(/ERR_FAILED/);
  });

  itLong(
    'an operator forks from a message of a person, and the agent answers it again in the copy',
    async () => {
      const page = await stage.look('#/c/edited');
      await message(page, 'second').first().hover();
      await message(page, 'second').first().getByRole('link', { name: 'Fork from entry' }).click();
      const panel = page.locator('.answer-panel');
      expect(await textOf(panel)).toContain('answered again in the copy');
      const width = async () => (await panel.boundingBox())?.width;
      const narrow = await width();
      await openPanel(page, 'Noted: second');
      expect(await width()).toBe(narrow);
      await panel.getByRole('link', { name: 'What if?' }).click();
      await panel.getByLabel('Persona').waitFor();
      expect(await width()).toBe(narrow);
      await panel.getByRole('link', { name: 'Fork from here' }).click();
      await page.goBack();
      await page.goBack();
      await page.goBack();
      await panel.getByRole('button', { name: 'Fork' }).click();
      await page.getByRole('heading', { name: 'first (copy)' }).waitFor();
      await message(page, 'Noted: second').waitFor();
      await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('composer');
    },
  );

  it('an operator tries another model and another persona, and sees the answers beside the recorded one', async () => {
    const page = await stage.look('#/c/edited');
    const panel = await openPanel(page, 'Noted: third');
    await panel.getByRole('link', { name: 'What if?' }).click();
    const persona = panel.getByLabel('Persona');
    await expect.poll(() => persona.inputValue()).toBe(EDITED.join('\n'));
    expect(await panel.getByRole('button', { name: 'Start' }).isDisabled()).toBe(true);
    expect(await textOf(panel)).toContain('Change one of them to start.');
    expect(await panel.getByLabel('Model').locator('option').allInnerTexts()).toEqual([
      'unchanged (default)',
      'other',
    ]);
    await panel.getByLabel('Model').selectOption('other');
    await panel.getByLabel('Runs of each side').fill('2');
    await panel.getByRole('button', { name: 'Start' }).click();
    await panel.getByText('done, 4 of 4 runs').waitFor();
    const sides = panel.locator('.side');
    expect(await sides.locator('h4').allInnerTexts()).toEqual(['Recorded', 'Unchanged', 'model other']);
    expect(await textOf(sides.nth(1))).toMatch(/(same as recorded\s+Noted: third[\s\S]*){2}/);
    expect(await textOf(sides.nth(2))).toMatch(/(different answer\s+Other: third[\s\S]*){2}<img src=x/);
    expect(await textOf(sides.nth(2))).toMatch(/[\d,]+ in, [\d,]+ out · cost unknown · [\d.]+ m?s/);
    expect(await page.locator('#console img').count()).toBe(0);
    await panel.getByRole('button', { name: 'Try another change' }).click();
    await panel.getByRole('button', { name: 'model other' }).waitFor();
    expect(await panel.getByLabel('Model').inputValue()).toBe('other');
    await panel.getByLabel('Model').selectOption('');
    await persona.fill('You answer in verse.');
    await panel.getByRole('button', { name: 'Start' }).click();
    await panel.getByText('done, 4 of 4 runs').waitFor();
    expect(await sides.locator('h4').allInnerTexts()).toContain('another persona');
    await page.route(
      '**/what-ifs',
      async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, body: (await response.text()).replaceAll('"done"', '"running"') });
      },
      { times: 1 },
    );
    await panel.getByRole('button', { name: 'Try another change' }).click();
    const earlier = panel.getByRole('listitem').filter({ hasText: 'another persona' });
    await earlier.getByText('running').waitFor();
    await earlier.getByText('done').waitFor();
    await panel.getByRole('link', { name: 'Why?' }).click();
    await panel.getByText('Definition', { exact: true }).waitFor();
  });

  itLong(
    'a persona that was tried is in its result and in the form for the next try, and two of them are told apart',
    async () => {
      const page = await stage.look('#/c/edited');
      const panel = await openPanel(page, 'Noted: second');
      await panel.getByRole('link', { name: 'What if?' }).click();
      const persona = panel.getByLabel('Persona');
      await expect.poll(() => persona.inputValue()).toBe(EDITED.join('\n'));
      const rhymes = EDITED.join('\n').replace('Never guess.', `Rhyme. ${HOSTILE}`);
      await persona.fill(rhymes);
      await panel.getByLabel('Begin at').selectOption('answer');
      await panel.getByRole('button', { name: 'Start' }).click();
      const focused = () => page.evaluate('document.activeElement.innerText');
      await expect.poll(focused).toBe('Try another change');
      await panel.getByText('done, 2 of 2 runs').waitFor();
      await panel.getByText('the persona that was tried').click();
      expect(await textOf(panel.locator('.folded pre'))).toBe(rhymes);
      await panel.getByRole('button', { name: 'Try another change' }).click();
      expect(await page.evaluate('document.activeElement.tagName')).toBe('SELECT');
      expect(await persona.inputValue()).toBe(rhymes);
      expect(await panel.getByLabel('Begin at').inputValue()).toBe('answer');
      await persona.fill(rhymes.replace('Rhyme.', 'Whisper.'));
      await panel.getByRole('button', { name: 'Start' }).click();
      await panel.getByText('done, 2 of 2 runs').waitFor();
      await panel.getByRole('button', { name: 'Try another change' }).click();
      await panel.getByRole('button', { name: /another persona: “Rhyme\./ }).waitFor();
      await panel.getByRole('button', { name: /another persona: “Whisper\./ }).click();
      await panel.getByText('the persona that was tried').click();
      expect(await textOf(panel.locator('.folded pre'))).toContain('Whisper.');
      expect(await page.locator('#console img').count()).toBe(0);
    },
  );

  itLong(
    'a what-if that is not started is kept while its panel is closed, and through a reload',
    async () => {
      const page = await stage.look('#/c/edited');
      const panel = await openPanel(page, 'Noted: third');
      const persona = panel.getByLabel('Persona');
      const open = async () => {
        await panel.getByRole('link', { name: 'What if?' }).click();
        await expect.poll(() => persona.isEnabled()).toBe(true);
      };
      await open();
      await panel.getByLabel('Model').selectOption('other');
      await persona.fill('You answer in verse.');
      await panel.getByLabel('Runs of each side').fill('3');
      const expectKept = async () => {
        await expect.poll(() => persona.inputValue()).toBe('You answer in verse.');
        expect(await panel.getByLabel('Model').inputValue()).toBe('other');
        expect(await panel.getByLabel('Runs of each side').inputValue()).toBe('3');
      };
      await panel.getByRole('link', { name: 'Why?' }).click();
      await open();
      await expectKept();
      await panel.getByRole('button', { name: 'Close' }).click();
      await openPanel(page, 'Noted: third');
      await open();
      await page.reload();
      await expectKept();
      expect(await page.locator('.row .draft').count()).toBe(0); // it is no message
      await persona.fill('');
      await panel.getByText('Persona (edited)').waitFor();
      expect(await persona.inputValue()).toBe('');
      await persona.fill(EDITED.join('\n'));
      await expect.poll(() => panel.getByText('Persona (edited)').count()).toBe(0);
    },
  );

  itLong('an explanation that is opened before its thread is read is not called unknown', async () => {
    const page = await stage.look('#/');
    await page.addInitScript('delete globalThis.SharedWorker; window.seen = new Set();');
    await page.addInitScript(`new MutationObserver(() => {
      const text = document.querySelector('.answer-panel .unknown')?.textContent;
      if (text) window.seen.add(text);
    }).observe(document, { childList: true, subtree: true })`);
    await page.route('**/api/**/events*', async (route) => {
      await page.locator('.answer-panel').waitFor();
      await page.waitForTimeout(300);
      await route.continue();
    });
    await page.goto(`${stage.url}/#/c/edited/why/2`);
    await page.reload();
    await page.locator('.answer-panel .account').waitFor();
    expect(await page.evaluate('[...window.seen]')).toEqual([]);
  });

  itLong('the panel fits a window of 390 pixels', async () => {
    const page = await stage.look('#/c/edited/why/7', { viewport: { width: 390, height: 760 } });
    await page.locator('.part-changes .line').first().waitFor();
    expect(await page.evaluate('document.querySelector(".account").scrollWidth <= 390')).toBe(true);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(await page.evaluate('document.documentElement.scrollHeight')).toBe(760);
  });
});
