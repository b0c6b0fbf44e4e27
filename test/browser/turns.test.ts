import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { sharedStage, textOf } from './support.ts';

describe.skipIf(chromiumPath === null)('the table of turns in the console', () => {
  const stage = sharedStage();
  /** Until it has the answer. */
  const talk = async (conversation: string, content: string, answer: string) => {
    await stage.post(conversation, content);
    await expect
      .poll(async () => JSON.stringify(await stage.api('GET', `conversations/${conversation}/entries`)))
      .toContain(answer);
  };

  it('filters the turns of all conversations, saves them as CSV, and each row opens why?', async () => {
    await talk('one', 'hello', 'Noted: hello');
    await talk('two', 'hand it over', 'Built.');
    const page = await stage.look('#/system');
    await page.getByRole('link', { name: 'Turns' }).click();
    const rows = page.locator('.turn-table tbody tr');
    await expect.poll(() => rows.count()).toBe(3);
    expect(await page.locator('#tools option[value="handoff"]').count()).toBe(1); // the names that exist are offered
    await page.getByLabel('Tool').fill('handoff');
    await expect.poll(() => rows.count()).toBe(1);
    expect(await textOf(rows.first())).toMatch(/completed\s+hand it over\s+Lena Lead.*handoff/s);
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'CSV' }).click();
    expect((await saved).suggestedFilename()).toBe('turns-tool-handoff.csv');
    const lines = (await readFile(await (await saved).path(), 'utf8')).trim().split('\r\n');
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain('two,hand it over,lead,');
    await page.getByLabel('Tool').fill('none');
    await page.getByText('No turn fits. Models and tools are found by their whole names.').waitFor();
    await page.getByLabel('Tool').fill('');
    await page.getByLabel('Conversation', { exact: true }).fill('one');
    await expect.poll(() => rows.count()).toBe(1);
    await page.getByLabel('Conversation', { exact: true }).fill('hand x');
    await page.getByText('None or several conversations have this in their title.').waitFor();
    for (const title of ['Hand it', 'hand it over']) {
      await page.getByLabel('Conversation', { exact: true }).fill(title); // as the column shows it, or a part
      await expect.poll(() => rows.count()).toBe(2);
    }
    await page.reload();
    await expect.poll(() => rows.count()).toBe(2);
    const [why, conversation] = await rows.first().getByRole('link').all();
    expect(await conversation?.getAttribute('href')).toBe('#/c/two');
    await why?.click();
    await page.locator('.answer-panel .account').waitFor();
    expect(await page.locator('.block.pointed').count()).toBe(1);
    await page.goBack();
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByLabel('Conversation', { exact: true }).fill('one');
    await expect.poll(() => rows.count()).toBe(1);
    await page.setViewportSize({ width: 320, height: 640 });
    const outcome = await page.getByRole('cell', { name: 'completed' }).boundingBox();
    expect(outcome && outcome.x + outcome.width).toBeLessThan(320); // without scrolling
    const ends = "getComputedStyle(document.querySelector('.turn-table')).backgroundAttachment";
    expect(await page.evaluate(ends)).toBe('local, local, scroll, scroll, scroll'); // a shadow where there is more
    await rows.getByRole('link').first().focus();
    await page.keyboard.press('Enter');
    await page.locator('.answer-panel h2').waitFor();
    expect(page.url()).toContain('#/c/one/why/2');
  });

  it('calls a turn that was stopped as the thread does, in the table and in its filter', async () => {
    await stage.post('halted', 'slowly');
    await expect
      .poll(async () => JSON.stringify(await stage.api('GET', 'conversations/halted/entries')))
      .toContain('turn-started');
    await stage.api('POST', 'conversations/halted/stop', { publisher: 'alice' });
    const page = await stage.look('#/turns?outcome=aborted');
    await page.getByRole('cell', { name: 'stopped', exact: true }).waitFor();
    expect(await page.getByLabel('Outcome').locator('option:checked').innerText()).toBe('stopped');
    expect(await page.getByLabel('Outcome').inputValue()).toBe('aborted'); // as the address and the API
  });

  itLong(
    'reads on until a turn fits or all are read, says that it looks, and ends when another filter is chosen',
    async () => {
      await talk('found', 'hello', 'Noted: hello');
      const { turns } = await stage.api<{ turns: object[] }>('GET', 'turns?conversation=found');
      const asked: string[] = [];
      const page = await stage.look();
      await page.route('**/api/turns?*', async (route) => {
        const { searchParams } = new URL(route.request().url());
        const at = Number(searchParams.get('after') ?? 0);
        asked.push(`${searchParams.get('outcome')} ${at}`);
        if (at === 2) await page.waitForTimeout(300);
        const next = searchParams.get('outcome') === 'failed' ? '2' : at === 5 ? null : `${at + 1}`;
        return route.fulfill({ json: { turns: at === 3 ? turns : [], next } });
      });
      await page.evaluate("location.hash = '#/turns?outcome=completed'");
      const more = page.locator('.turn-table').getByRole('button');
      await expect.poll(() => more.innerText()).toBe('Looking…');
      const rows = page.locator('.turn-table tbody tr');
      await rows.waitFor();
      await expect.poll(() => more.innerText()).toBe('Look for more, newest conversations first');
      expect(asked).toEqual([0, 1, 2, 3].map((at) => `completed ${at}`));
      await more.click();
      await more.waitFor({ state: 'detached' });
      expect(await rows.count()).toBe(1);
      await page.getByLabel('Outcome').selectOption('failed'); // without an end
      await expect.poll(() => asked.filter((one) => one === 'failed 2').length).toBeGreaterThan(1);
      await page.getByLabel('Outcome').selectOption('limited');
      await rows.waitFor();
      const { length } = asked.filter((one) => one.startsWith('failed'));
      await page.waitForTimeout(700);
      expect(asked.filter((one) => one.startsWith('failed')).length).toBe(length);
    },
  );

  itLong(
    'follows its address: another link, an action and the way back show its filter and its rows',
    async () => {
      await talk('addressed', 'hand it over', 'Built.');
      const page = await stage.look('#/turns?tool=handoff');
      const rows = page.locator('.turn-table tbody tr');
      const tool = page.getByLabel('Tool');
      const noTurn = page.getByText('No turn fits.');
      await rows.first().waitFor();
      await page.evaluate("location.hash = '#/turns?tool=none&outcome=failed'");
      await noTurn.waitFor();
      expect([await tool.inputValue(), await page.getByLabel('Outcome').inputValue()]).toEqual([
        'none',
        'failed',
      ]);
      await page.goBack();
      await rows.first().waitFor();
      expect(await tool.inputValue()).toBe('handoff');
      await tool.fill('none');
      await noTurn.waitFor();
      await page.keyboard.press('Control+k');
      await page.keyboard.type('>Turns');
      await page.keyboard.press('Enter');
      await rows.first().waitFor();
      expect([await tool.inputValue(), page.url()]).toEqual(['', `${stage.url}/#/turns`]);
    },
  );

  itLong('the turn that began last is first, whatever its conversation, also in a file', async () => {
    await talk('twin', 'first', 'Noted: first');
    await talk('older', 'first', 'Noted: first');
    await talk('other', 'second', 'Noted: second');
    await talk('older', 'third', 'Noted: third');
    const page = await stage.look('#/turns');
    const links = page.locator('.turn-table tbody td:first-child a');
    await links.nth(2).waitFor();
    const began = await links.evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    expect(began.slice(0, 3).map((link) => /c\/(\w+)/.exec(link ?? '')?.[1])).toEqual([
      'older',
      'other',
      'older',
    ]);
    for (const id of ['twin', 'older']) // of two conversations with one title
      await page
        .getByRole('cell', { name: `first ${id}`, exact: true })
        .first()
        .waitFor();
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'JSON Lines' }).click();
    const [first, second] = (await readFile(await (await saved).path(), 'utf8')).split('\n', 2);
    expect([first, second].map((row) => JSON.parse(row ?? '').conversation)).toEqual(['older', 'other']);
  });
});
