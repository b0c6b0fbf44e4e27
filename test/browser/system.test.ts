import type { Locator, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { connect } from '../../src/client/index.ts';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { sharedStage, textOf } from './support.ts';
import { AGENTS } from './team.ts';

const TOKENS = { read: 'token-that-may-only-read', operate: 'token-that-may-operate-all' };
const RULES = [
  { when: { last: '/^fail/' }, reply: { text: '', error: { code: 'FAKE', message: 'It is broken.' } } },
  { reply: { text: 'Noted: {{last}}' } },
];
const PROMPT_SECRET = 'You lead.';

describe.skipIf(chromiumPath === null)('the page about the team and the system', () => {
  const stage = sharedStage(() => {
    const price = { inputPerMillion: 1_000, outputPerMillion: 1_000 };
    return {
      agents: {
        ...AGENTS,
        critic: '---\nname: Cora Critic\ndescription: judges\nruntime: bus\n---\n',
      },
      script: RULES,
      settings: {
        models: { default: { provider: 'scripted', script: 'script.yaml', price } },
        tools: { mcpServers: { broken: { command: 'there-is-no-such-program' } } },
        http: { tokens: TOKENS },
      },
      token: TOKENS.operate,
    };
  }, /net::ERR_|status of (400|401|503)/);

  const look = async (role: keyof typeof TOKENS, hash = '#/system') => {
    const page = await stage.look(hash);
    await page.getByLabel('This daemon requires a token').fill(TOKENS[role]);
    await page.keyboard.press('Enter');
    return page;
  };
  const { post } = stage;
  const refuse = async (publisher: string, body: string) => {
    const nats = await openNats({ url: stage.nats });
    await nats.jetstream().publish(`parley.in.${publisher}.demo`, new TextEncoder().encode(body));
    await nats.close();
  };
  const badge = (page: Page) => page.locator('.system-link .count');
  const part = (page: Page, name: string | RegExp): Locator => page.getByRole('region', { name });

  it('one badge counts what is wrong, and the page says what it is', async () => {
    const page = await look('read', '#/');
    await expect.poll(() => textOf(badge(page))).toMatch(/^2/);
    await page.keyboard.press('s');
    const health = await textOf(page.locator('.health'));
    expect(health).toMatch(
      /Agent critic is not connected\s*its turns fail; start the program .*docs\/guides\/remote-agents\.md/,
    );
    expect(health).toContain('MCP server broken is not connected');
    expect(await textOf(part(page, 'MCP servers'))).toMatch(/broken\s+not connected\s+.*no-such-program/s);
  });

  itLong('a bus agent that connects leaves the badge without a reload, in two browsers', async () => {
    const pages = [await look('read'), await look('operate')];
    for (const page of pages) await page.locator('.health').getByText('Agent critic').waitFor();
    const client = await connect({ url: stage.nats });
    await client.agent('critic', async () => ({ content: 'Fine.' }));
    for (const page of pages) {
      await page.locator('.health').getByText('Agent critic').waitFor({ state: 'detached' });
      expect(await textOf(part(page, 'Team'))).toMatch(/Cora Critic\s+judges\s+connected/);
    }
    await client.close();
  });

  it('an agent shows its tools, its model and, on demand, its persona', async () => {
    const page = await look('read');
    const lead = page.locator('.member').filter({ hasText: 'Lena Lead' });
    const widthOf = async (one: Locator) => (await one.boundingBox())?.width ?? 0;
    expect(await widthOf(lead)).toBeGreaterThan((await widthOf(page.locator('.team'))) - 5);
    await lead.locator('summary').click();
    expect(await textOf(lead)).toMatch(/Model\s+default/);
    expect(await textOf(lead)).toContain('set_phase');
    expect(await page.locator('body').innerText()).not.toContain(PROMPT_SECRET);
    await lead.getByRole('button', { name: 'Read the persona' }).click();
    expect(await textOf(lead.locator('.persona'))).toBe(PROMPT_SECRET);
  });

  itLong('what agents used, the latency and the failures of models, and the daemon are shown', async () => {
    await post('calm', 'Hello');
    await post('broken', 'fail now');
    const page = await look('read');
    await expect.poll(() => textOf(part(page, /^Used/))).toMatch(/Lena Lead\s+\d+\s+[\d,]+\s+\$\d/);
    expect(await page.locator('.day-bars li').count()).toBe(14);
    const today = page.locator('.day-bars li').last();
    expect(await today.getAttribute('title')).toMatch(/\$\d/);
    await page.getByLabel('Unit of the chart').selectOption('Tokens');
    await expect.poll(() => today.getAttribute('title')).toMatch(/tokens/);
    expect(await textOf(part(page, 'Models'))).toMatch(/default\s+FAKE/);
    await page.locator('.health').getByText('The newest call of model default failed').waitFor();
    expect(await textOf(part(page, 'Daemon'))).toMatch(/Version\s+\d/);
  });

  it('an agent that is not connected is marked on the first page and above a thread, until it connects', async () => {
    await post('marked', 'Hello');
    const page = await look('operate', '#/');
    const card = page.locator('.agent-card', { hasText: 'Cora Critic' });
    await card.getByText('not connected').waitFor();
    expect(await textOf(page.locator('.agent-card', { hasText: 'Lena Lead' }))).not.toContain(
      'not connected',
    );
    await page.evaluate("location.hash = '#/c/marked'");
    const chip = page.locator('.people .chip', { hasText: 'Cora Critic' });
    await chip.getByText('not connected').waitFor();
    const client = await connect({ url: stage.nats });
    await client.agent('critic', async () => ({ content: 'Fine.' }));
    await page.keyboard.press('s');
    await part(page, 'Team').waitFor(); // otherwise nothing is detached yet, and Escape comes before the page
    await page.locator('.health').getByText('Agent critic').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await chip.waitFor();
    expect(await chip.innerText()).not.toContain('not connected');
    await client.close();
  });

  it('a refused post is read, posted again and discarded, by operators alone', async () => {
    await refuse('alice', '{"content":"first wish\u202e","to":["ada"]}');
    await refuse('ci', '{oops');
    const reader = await look('read');
    const letter = (page: Page, code: string) => page.locator('.letters > li').filter({ hasText: code });
    await letter(reader, 'UNKNOWN_AGENT').getByRole('button', { name: 'Show the post' }).click();
    expect(await textOf(letter(reader, 'UNKNOWN_AGENT').locator('pre'))).toContain('first wish\\u202e');
    expect(await reader.getByRole('button', { name: /Post again|Discard/ }).count()).toBe(0);
    const page = await look('operate');
    await page.locator('.health').getByText('2 posts were refused').waitFor();
    await page.locator('.health').getByRole('button', { name: 'Show them' }).click();
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Show the post');
    await letter(page, 'UNKNOWN_AGENT').getByRole('button', { name: 'Post again' }).click();
    expect(await textOf(page.getByRole('alert'))).toContain('there is no agent "ada"');
    const malformed = letter(page, 'MALFORMED_JSON');
    expect(await textOf(malformed)).toContain('It cannot be posted again as it is.');
    expect(await malformed.getByRole('button', { name: 'Post again' }).count()).toBe(0);
    await malformed.getByRole('button', { name: 'Discard' }).click();
    await expect.poll(() => page.evaluate('document.activeElement.innerText')).toBe('Cancel');
    await malformed.getByRole('button', { name: 'Discard for good' }).press('Enter');
    await malformed.waitFor({ state: 'detached' });
    await letter(reader, 'MALFORMED_JSON').waitFor({ state: 'detached' });
  });

  itLong(
    'a daemon that was killed is the only problem until it is back, and its page stays readable',
    async () => {
      const page = await look('operate');
      await part(page, 'Team').waitFor();
      const other = await look('operate', '#/');
      await badge(other).waitFor();
      await stage.kill();
      await page.locator('.health').getByText('The daemon does not answer').waitFor();
      expect(await textOf(part(page, 'Team'))).toContain('Lena Lead');
      await other.locator('.away').waitFor();
      await other.keyboard.press('s'); // for the first time
      expect(await textOf(other.locator('.health'))).toMatch(
        /does not answer\s+this page shows the state of \d\d:\d\d:\d\d/,
      );
      expect(await textOf(part(other, 'Team'))).toContain('Lena Lead');
      expect(await textOf(badge(page))).toMatch(/^1/);
      await stage.restart();
      await page
        .locator('.health')
        .getByText('The daemon does not answer')
        .waitFor({ state: 'detached', timeout: 20_000 });
      await expect.poll(() => textOf(part(page, /^Used/))).toMatch(/Lena Lead\s+\d/); // from the log
    },
  );

  itLong('it fits 320 pixels, and the way back to the list says how much needs attention', async () => {
    const page = await stage.look('#/system', { viewport: { width: 320, height: 640 } });
    await page.getByLabel('This daemon requires a token').fill(TOKENS.read);
    await page.keyboard.press('Enter');
    await part(page, 'Team').waitFor();
    for (const name of ['html', '.system-body'])
      expect(await page.evaluate(`document.querySelector('${name}').scrollWidth`)).toBe(320);
    const back = page.getByRole('link', { name: /^Back to the list \d need/ });
    expect(await textOf(back)).toMatch(/\d/);
    await page.evaluate("location.hash = '#/inbox'"); // whose number is that of its items
    await page.getByRole('link', { name: 'Back to the list', exact: true }).waitFor();
  });
});
