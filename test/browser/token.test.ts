import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { sharedStage, textOf } from './support.ts';

describe.skipIf(chromiumPath === null)('the console of a daemon with a generated token', () => {
  const stage = sharedStage({ env: { PARLEY_HTTP_TOKEN: '' } }, null);

  const address = async () =>
    (await stage.project.parley('token', '--json')).json()[0] as { token: string; url: string };

  it('the printed address signs a browser in, once, for all its tabs, also after a restart', async () => {
    const { token, url } = await address();
    const link = url.slice(url.indexOf('#'));
    const page = await stage.look(link);
    const compose = page.getByLabel('New conversation');
    await compose.waitFor();
    expect(page.url()).toBe(`${stage.url}/#/`);
    const kept = await page.evaluate<string>(
      'JSON.stringify([{ ...sessionStorage }, { ...localStorage }, document.cookie])',
    );
    expect(kept).not.toContain(token);
    const tab = await page.context().newPage();
    await tab.goto(`${stage.url}/#/new`);
    await tab.locator('#composer').waitFor(); // no token is asked for
    await stage.kill();
    await stage.restart();
    await page.reload();
    await compose.waitFor();
    const other = await stage.look(link); // another browser
    expect(await textOf(other.getByRole('alert'))).toMatch(
      /^This address was used already.*parley token --url/,
    );
    expect(await other.getByRole('alert').locator('code').allInnerTexts()).toEqual([
      'parley token --url',
      'parley token NAME --url',
    ]);
    await other.evaluate(`location.hash = '${new URL((await address()).url).hash}'`);
    await other.getByLabel('New conversation').waitFor();
    await stage.endOfTest(/status of 401|net::ERR_/);
  });

  it('a browser that is signed in stays so when an address is opened there, and Sign out ends it in all tabs', async () => {
    const page = await stage.look(new URL((await address()).url).hash);
    await page.getByLabel('New conversation').waitFor();
    const exchanges: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/api/session')) exchanges.push(request.method());
    });
    const next = new URL((await address()).url).hash;
    const isAnswered = page.waitForResponse(/api\/workflows$/);
    await page.evaluate(`location.hash = '${next}'`);
    await isAnswered;
    expect(exchanges).toEqual([]);
    const tab = await page.context().newPage();
    await tab.goto(`${stage.url}/#/system`);
    await tab.getByRole('button', { name: 'Sign out' }).click();
    for (const one of [tab, page]) await one.getByLabel('This daemon requires a token').waitFor();
    await page.evaluate(`location.hash = '${next}'`); // not used yet
    for (const one of [page, tab]) await one.locator('.console').waitFor();
    await stage.endOfTest(/status of 401/);
  });

  it('a server on another port of the same host, such as one that an agent started, gets no cookie of a browser that is signed in', async () => {
    const page = await stage.look(new URL((await address()).url).hash);
    await page.getByLabel('New conversation').waitFor();
    const received: string[] = [];
    const other = createServer((request, response) => {
      received.push(`${request.url} ${request.headers.cookie ?? ''}`);
      response.setHeader('content-type', 'text/html').end('<title>other</title>');
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const tab = await page.context().newPage();
    await tab.goto(`http://127.0.0.1:${port}/api/page`);
    for (const path of ['/', '/api', '/api/session', '/api/identity', '/s/', '/s/x/api/identity'])
      await tab.evaluate(`fetch('${path}').then((answer) => answer.text())`);
    expect(received.length).toBeGreaterThan(6);
    expect(received.filter((one) => one.includes('parley-session'))).toEqual([]);
    await stage.endOfTest();
  });

  it('a refused token says why, and a password manager finds the field', async () => {
    const page = await stage.look();
    const field = page.getByLabel('This daemon requires a token');
    await field.fill('of another daemon');
    await page.keyboard.press('Enter');
    expect(await textOf(page.getByRole('alert'))).toBe('The daemon has no such token'); // no words for programs
    expect(await field.getAttribute('autocomplete')).toBe('current-password');
    await field.fill((await address()).token);
    await page.keyboard.press('Enter');
    await page.getByLabel('New conversation').waitFor();
    await stage.endOfTest(/status of 401/);
  });
});
