import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { sharedStage, textOf } from './support.ts';

describe.skipIf(chromiumPath === null)('the console of a daemon with a generated token', () => {
  const stage = sharedStage({ env: { PARLEY_HTTP_TOKEN: '' } }, null);

  const address = async () =>
    (await stage.project.parley('token', '--json')).json()[0] as { token: string; url: string };
  const keptBy = (page: Page) => page.evaluate('sessionStorage.getItem("parley.token")');

  it('the printed address opens the console once, and the token is kept only in that tab', async () => {
    const { token, url } = await address();
    const link = url.slice(url.indexOf('#'));
    const page = await stage.look(link);
    const compose = page.getByLabel('New conversation');
    await compose.waitFor();
    expect(page.url()).toBe(`${stage.url}/#/`);
    await page.reload();
    await compose.waitFor();
    await page.goBack().catch(() => undefined);
    expect(page.url()).not.toContain(token);
    const other = await stage.look(link);
    expect(await textOf(other.getByRole('alert'))).toMatch(/used already.*parley token --url/);
    expect(await keptBy(other)).toBeNull();
    await other.evaluate(`location.hash = '${new URL((await address()).url).hash}'`);
    await other.getByLabel('New conversation').waitFor();
    expect(await keptBy(other)).toBe(token);
    expect(other.url()).toBe(`${stage.url}/#/`);
    await stage.endOfTest(/status of 401/);
  });

  it('a tab keeps its token when an address is opened there, unless the daemon refuses the token', async () => {
    const { token, url } = await address();
    const { hash } = new URL(url);
    const page = await stage.look(hash);
    const compose = page.getByLabel('New conversation');
    await compose.waitFor();
    const exchanges: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/api/console-token')) exchanges.push(request.method());
    });
    const next = new URL((await address()).url).hash;
    const isAnswered = page.waitForResponse(/api\/workflows$/);
    await page.evaluate(`location.hash = '${next}'`);
    await isAnswered;
    expect(page.url()).toBe(`${stage.url}/#/`);
    expect([await keptBy(page), exchanges]).toEqual([token, []]);
    await page.evaluate('sessionStorage.setItem("parley.token", "of-another-daemon")');
    await page.evaluate(`location.hash = '${next}'`); // not used yet
    await expect.poll(() => keptBy(page)).toBe(token);
    await compose.waitFor();
    await stage.endOfTest(/status of 401/);
  });
});
