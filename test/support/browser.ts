import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { findChromium } from '../../scripts/chromium.ts';

/** Headless Chromium of the system. If null, there is none, and the tests that need it are skipped visibly. */
export const chromiumPath: string | null = await findChromium(process.env);

/** A page of the console, and every error in it. */
export interface ConsolePage {
  readonly page: Page;
  /** Errors, refused resources, policy violations, and requests to hosts other than the daemon. */
  readonly faults: string[];
  close(): Promise<void>;
}

export function launchBrowser(...more: readonly string[]): Promise<Browser> {
  if (chromiumPath === null) throw new Error('there is no chromium');
  // Root has no sandbox, and the pages are our own.
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...more];
  return chromium.launch({ executablePath: chromiumPath, args });
}

/** No animation without end: without a graphics card, it takes a sixth of a processor in each page. */
export const CONTEXT: BrowserContextOptions = {
  viewport: { width: 1_280, height: 820 },
  reducedMotion: 'reduce',
};

export async function openConsole(
  browser: Browser,
  url: string,
  hash = '#/',
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({ ...CONTEXT, ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(message.text());
  });
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().replace('blob:', '').startsWith(`${url}/`))
      faults.push(`asked elsewhere: ${request.url()}`);
  });
  await page.goto(`${url}/${hash}`);
  await page.locator('.console, .gate:not([aria-busy])').waitFor(); // before, it listens to no key
  return { page, faults, close: () => context.close() };
}
