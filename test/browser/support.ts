import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { afterEach, expect } from 'vitest';
import { ConsolePages, sharedBrowser } from '../support/browser.ts';
import { shared } from '../support/lifetime.ts';
import { openProject, type Project, type ProjectOptions } from '../support/project.ts';
import { AGENTS, RULES } from './team.ts';

/** A daemon with scripted agents, and the browser of this worker. */
export interface Stage {
  readonly project: Project;
  readonly url: string;
  /** The nats-server. */
  readonly nats: string;
  readonly browser: Browser;
  /** A page whose errors are checked when the stage is closed. */
  look(hash?: string, options?: BrowserContextOptions, url?: string): Promise<Page>;
  /** As a program would. */
  api<T = unknown>(method: string, path: string, body?: object): Promise<T>;
  /** A message of Alice. */
  post(conversation: string, content: string, more?: object): Promise<unknown>;
  /** Posts as Alice, and opens the conversation: with the message that has `answer`, if it is given. */
  begin(conversation: string, content: string, answer?: string): Promise<Page>;
  /** Opens the conversation, with the message that has this text. */
  open(conversation: string, text: string, options?: BrowserContextOptions, url?: string): Promise<Page>;
  /** Closes the pages of one test. Fails if one had an unexpected error. */
  endOfTest(expected?: RegExp): Promise<void>;
  /** Ends the daemon with SIGKILL. */
  kill(): Promise<void>;
  /** Starts the daemon again, on the same port. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** The agents and the script are those of `team.ts`, unless they are given. */
export interface StageOptions extends ProjectOptions {
  /** Before the daemon starts. */
  readonly before?: (project: Project) => Promise<unknown>;
  readonly token?: string;
}

/** For the tests of this file or `describe`. A test fails if its pages had other errors than `expected`; null: no check. */
export function sharedStage(
  options: StageOptions | (() => StageOptions | Promise<StageOptions>) = {},
  expected?: RegExp | null,
): Stage {
  const stage = shared(async () => openStage(typeof options === 'function' ? await options() : options));
  if (expected !== null) afterEach(() => stage.endOfTest(expected));
  return stage;
}

async function openStage({ before, token, ...options }: StageOptions): Promise<Stage> {
  const project = await openProject({
    nats: {},
    http: true,
    agents: AGENTS,
    script: RULES,
    settings: { approvals: { ownRequests: true } },
    ...options,
  });
  await before?.(project);
  await project.up();
  const url = project.http;
  const browser = await sharedBrowser();
  const pages = new ConsolePages(browser, url);
  const api = async <T>(method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/api/${path}`, {
      method,
      headers: {
        ...(body && { 'content-type': 'application/json' }),
        ...(token && { authorization: `Bearer ${token}` }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await response.json()) as T;
  };
  const look: Stage['look'] = (...place) => pages.open(...place);
  const post: Stage['post'] = (conversation, content, more = {}) =>
    api('POST', `conversations/${conversation}/messages`, { content, publisher: 'alice', ...more });
  return {
    project,
    url,
    nats: project.nats.url,
    browser,
    look,
    api,
    post,
    async begin(conversation, content, answer) {
      await post(conversation, content);
      const page = await look(`#/c/${conversation}`);
      if (answer !== undefined) await message(page, answer).waitFor();
      return page;
    },
    async open(conversation, text, ...where) {
      const page = await look(`#/c/${conversation}`, ...where);
      await message(page, text).waitFor();
      return page;
    },
    async endOfTest(expected) {
      const faults = await pages.release();
      expect(faults.filter((fault) => !expected?.test(fault))).toEqual([]);
    },
    kill() {
      pages.discard();
      return project.daemon.kill9();
    },
    async restart() {
      await project.up('--http', new URL(url).host);
    },
    async close() {
      await pages.close();
      await project.close();
    },
  };
}

/** Waits until it is visible, and returns its text. */
/** The list changes within a second, the inbox within three. */
export const until = <T>(look: () => Promise<T> | T) => expect.poll(look);

/** Imports a conversation of earlier days, `long`, with so many messages. */
export async function importLong(
  project: Project,
  length: number,
  contentOf = (index: number) => `message ${index}`,
): Promise<void> {
  const messages = Array.from({ length }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: contentOf(index),
  }));
  const file = join(project.root, 'long.json');
  await writeFile(file, JSON.stringify(messages));
  const { code, stderr } = await project.parley('import', file, '--conversation', 'long', '--agent', 'lead');
  if (code !== 0) throw new Error(stderr);
}

export async function textOf(locator: Locator): Promise<string> {
  await locator.waitFor({ state: 'visible' });
  return locator.innerText();
}

/** Texts that end outside of the window, without a way to scroll there or a sign that they go on. */
export const textsCut = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(`(() => {
    const texts = document.createTreeWalker(document.getElementById('console'), NodeFilter.SHOW_TEXT);
    const found = [];
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const range = document.createRange();
      range.selectNodeContents(text);
      const isCut = [...range.getClientRects()].some(({ right, width }) => width > 0 && right > innerWidth + 1);
      let around = text.parentElement;
      const isShown = ({ overflowX, textOverflow }) => textOverflow === 'ellipsis' || /auto|scroll/.test(overflowX);
      const ends = '.thread, .runs, #console';
      while (isCut && !around.matches(ends) && !isShown(getComputedStyle(around))) around = around.parentElement;
      if (isCut && around.matches(ends) && !text.parentElement.closest('.unseen')) found.push(text.data.trim().slice(0, 80));
    }
    return found;
  })()`);

export async function centreOf(locator: Locator): Promise<{ readonly x: number; readonly y: number }> {
  const { x = 0, y = 0, width = 0, height = 0 } = (await locator.boundingBox()) ?? {};
  return { x: x + width / 2, y: y + height / 2 };
}

export const PHONE = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true };

/** The second click of a double click, at the place of the first. False: no button got it. */
export async function clickAgain(page: Page): Promise<boolean> {
  await page.evaluate(
    "window.isTaken = false; addEventListener('click', ({ target }) => { window.isTaken = target.closest('button') !== null })",
  );
  await page.mouse.down({ clickCount: 2 });
  await page.mouse.up({ clickCount: 2 });
  return page.evaluate<boolean>('window.isTaken');
}

/** Esc a moment after the last one: a quick second one leaves no page (KEYS-1). */
export async function escapeLater(page: Page): Promise<void> {
  await momentAfter(page, 'Escape');
  await page.keyboard.press('Escape');
}

/** A key alone, and no part of a typed word (KEYS-3). */
export async function pressAlone(page: Page, key: string): Promise<void> {
  await momentAfter(page, 'character');
  await page.keyboard.press(key);
}

/** Waits until the last such key is longer ago than the console takes for one movement of a hand. */
async function momentAfter(page: Page, key: 'character' | 'Escape'): Promise<void> {
  const passed = await page.evaluate<number>(`performance.now() - pressedAt.${key}`);
  if (passed < 550) await page.waitForTimeout(550 - passed);
  // What the key before it selected has the focus.
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
}

export async function write(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  await page.getByLabel('Message').press('Enter');
}

export const message = (page: Page, text: string | RegExp): Locator =>
  page.locator('article.message').filter({ hasText: text });

/** The item of a conversation in the inbox. */
export const inboxItem = (page: Page, title: string): Locator =>
  page.locator(`.inbox-entry[aria-label*=${JSON.stringify(title)}]`);

/** The same, shown in full. */
export async function openItem(page: Page, title: string): Promise<Locator> {
  await inboxItem(page, title).locator('.inbox-line').click();
  return inboxItem(page, title).locator('.detail');
}
