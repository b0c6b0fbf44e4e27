import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { sharedFolder } from '../support/lifetime.ts';
import { message, sharedStage, textOf } from './support.ts';
import { AGENTS } from './team.ts';

const PROGRAM = join(import.meta.dirname, '../support/acp/agent.mjs');

describe.skipIf(chromiumPath === null)('a coding agent in the console', () => {
  const folder = sharedFolder();
  const stage = sharedStage({
    settings: { tools: { project: folder }, approvals: { ownRequests: true } },
    agents: {
      ...AGENTS,
      coder: `---
name: Cleo Coder
runtime: acp
command: ${JSON.stringify([process.execPath, PROGRAM])}
cwd: "@project/"
env: { ACP_STATE: ${JSON.stringify(join(folder, 'state'))} }
---
You code.`,
    },
  });

  it('its permission shows the difference, and what it then did is a folded row that says who reports it', async () => {
    await writeFile(join(folder, 'a.txt'), 'one\ntwo\nthree');
    await stage.post('edits', 'edit a.txt <b>one</b>\u202e', { to: ['coder'] });
    const page = await stage.look('#/c/edits');
    const card = page.locator('.ask-card');
    await card.locator('.diff .added').waitFor();
    expect(await card.locator('.diff .gone').allInnerTexts()).toEqual(
      ['one', 'two', 'three'].map(containing),
    );
    await card.getByRole('button', { name: 'Approve' }).click();
    await message(page, 'Done.').waitFor();
    const row = page.locator('.call.reported');
    expect(await textOf(row)).toMatch(/^\s*Edit a\.txt\s+edit\s+reported by Cleo Coder: completed\s*$/);
    await row.locator('summary').click();
    expect(await row.locator('.diff .gone').count()).toBe(3);
    expect(await textOf(row.locator('.diff .added'))).toContain('<b>one</b>\\u202e');
    expect(await textOf(row.locator('pre').first())).toContain('a.txt');
  });

  it('a call that it makes is named while it works', async () => {
    await stage.post('works', 'work npm run build', { to: ['coder'] });
    const page = await stage.look('#/c/works');
    await page.locator('.draft', { hasText: 'calls npm run build' }).waitFor();
    await stage.api('POST', 'conversations/works/stop', { publisher: 'alice' });
    await page.locator('.draft').waitFor({ state: 'detached' });
  });
});

const containing = (text: string) => expect.stringContaining(text);
