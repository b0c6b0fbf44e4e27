import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { findChromium } from '../../scripts/chromium.ts';

/** Headless Chromium of the system. If null, there is none, and the tests that need it are skipped visibly. */
export const chromiumPath: string | null = await findChromium(process.env);

export function launchBrowser(...more: readonly string[]): Promise<Browser> {
  if (chromiumPath === null) throw new Error('there is no chromium');
  // Root has no sandbox, and the pages are our own.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...more];
  return chromium.launch({ executablePath: chromiumPath, args });
}

let ofWorker: Promise<Browser> | undefined;

/** One for all files of this worker, with whose process it ends: a start takes a second. */
export async function sharedBrowser(): Promise<Browser> {
  const running = await ofWorker;
  if (!running?.isConnected()) ofWorker = launchBrowser();
  return (await ofWorker) as Browser;
}

/** No animation without end: without a graphics card, it takes a sixth of a processor in each page. */
export const CONTEXT: BrowserContextOptions = {
  viewport: { width: 1_280, height: 820 },
  reducedMotion: 'reduce',
};

/** In each page, before the console: notes when keys were pressed, and `?anew` empties the storages of an earlier test. */
const BEFORE_CONSOLE = `
  globalThis.pressedAt = { character: -Infinity, Escape: -Infinity };
  addEventListener('keydown', ({ key, timeStamp, ctrlKey, metaKey, altKey }) => {
    if (key === 'Escape') pressedAt.Escape = timeStamp;
    if (key.length === 1 && !ctrlKey && !metaKey && !altKey) pressedAt.character = timeStamp;
  }, true);
  if (location.search === '?anew') {
    localStorage.clear();
    sessionStorage.clear();
    history.replaceState(null, '', location.pathname + location.hash);
  }`;

/** A page of the console. */
interface ConsolePage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** The options of its context, besides the size. */
  readonly kind: string;
  /** Since it was opened: errors, refused resources, policy violations, and requests to hosts other than the daemon. */
  faults: string[];
  /** For longer than its document lives. */
  isChanged: boolean;
}

/**
 * The pages of the console of one daemon. A new context takes twice the processor time of a load in a page that exists. So a
 * page is used again by a later test with the same options, unless a test changed more than its document: the console is
 * loaded anew, without cookies and with empty storages.
 */
export class ConsolePages {
  readonly #browser: Browser;
  readonly #url: string;
  #opened: ConsolePage[] = [];
  #unused: ConsolePage[] = [];

  constructor(browser: Browser, url: string) {
    this.#browser = browser;
    this.#url = url;
  }

  async open(hash = '#/', options: BrowserContextOptions = {}, url = this.#url): Promise<Page> {
    const { viewport = CONTEXT.viewport, ...others } = options;
    const kind = JSON.stringify([url, others]);
    const found = this.#unused.find((one) => one.kind === kind);
    this.#unused = this.#unused.filter((one) => one !== found);
    const one = found ?? (await newPage(this.#browser, url, kind, { ...CONTEXT, ...options }));
    this.#opened.push(one);
    if (url !== this.#url) one.isChanged = true; // its server ends with the test
    if (found) {
      one.faults = [];
      await one.page.unrouteAll({ behavior: 'ignoreErrors' });
      await one.context.clearCookies();
      await one.page.mouse.move(0, 0);
      if (viewport) await one.page.setViewportSize(viewport);
    }
    await one.page.goto(`${url}/${found ? '?anew' : ''}${hash}`);
    await one.page.locator('.console, .gate:not([aria-busy])').waitFor(); // before, it listens to no key
    return noting(one);
  }

  async close(): Promise<void> {
    this.discard();
    await this.release();
  }

  /** The daemon was killed: what its pages keep for the next one stays with this test. */
  discard(): void {
    for (const one of [...this.#opened, ...this.#unused]) one.isChanged = true;
  }

  /** The end of a test. Answers the errors in its pages. */
  async release(): Promise<string[]> {
    const opened = this.#opened.splice(0);
    const all = [...opened, ...this.#unused];
    this.#unused = all.filter(({ page, isChanged }) => !isChanged && !page.isClosed());
    for (const one of all) if (!this.#unused.includes(one)) await one.context.close();
    return opened.flatMap(({ faults }) => faults);
  }
}

async function newPage(
  browser: Browser,
  url: string,
  kind: string,
  options: BrowserContextOptions,
): Promise<ConsolePage> {
  const context = await browser.newContext(options);
  await context.addInitScript(BEFORE_CONSOLE);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const one: ConsolePage = { page, context, kind, faults: [], isChanged: false };
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') one.faults.push(message.text());
  });
  page.on('pageerror', (error) => one.faults.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().replace('blob:', '').startsWith(`${url}/`))
      one.faults.push(`asked elsewhere: ${request.url()}`);
  });
  return one;
}

/** What changes more of a page than its document. */
const CHANGES: ReadonlySet<PropertyKey> = new Set([
  ...['on', 'once', 'clock', 'context', 'addInitScript', 'emulateMedia'],
]);

/** The page for a test. Playwright itself uses the page as it is. */
const noting = (one: ConsolePage): Page =>
  new Proxy(one.page, {
    get(page, key) {
      if (CHANGES.has(key)) one.isChanged = true;
      const value: unknown = Reflect.get(page, key);
      return typeof value === 'function' ? value.bind(page) : value;
    },
  });
