import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { consoleMissing, PAGE } from './console-folder.ts';
import type { Application, Request, RouteContext } from './context.ts';
import { checkHost } from './guard/hosts.ts';

/**
 * Serves the console: a page and its built assets.
 *
 * CONSOLE-1 No token is needed: the files are the same for all and contain no conversation. The page's requests pass the
 *    guard with the user's token.
 * CONSOLE-2 The page loads nothing from other origins, runs no inline script, and renders no unsanitised HTML.
 * CONSOLE-3 Only names without a folder are served, so no file outside the folder is.
 */

/** CONSOLE-2: enforced by the browser. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "worker-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types dompurify parley-worker',
].join('; ');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};
/** CONSOLE-3. The build puts a hash of the content into the name. */
const ASSET_NAME = /^[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;
const FOREVER = 'public, max-age=31536000, immutable';

export function addConsoleRoutes(app: Application, { consoleFolder, known }: RouteContext): void {
  const file = async (context: Request, path: string, cache: string) => {
    checkHost(context.req.header('host'), known);
    const type = TYPES[extname(path)];
    const content = type && (await readFile(join(consoleFolder, path)).catch(() => null));
    return content
      ? context.body(new Uint8Array(content), 200, {
          'content-type': type,
          'content-security-policy': POLICY,
          'cache-control': cache,
        })
      : null;
  };
  app.get('/', async (context) => {
    const page = await file(context, PAGE, 'no-cache');
    if (page) return page;
    throw consoleMissing();
  });
  app.get('/assets/:name', async (context) => {
    const name = context.req.param('name');
    const asset = ASSET_NAME.test(name) ? await file(context, `assets/${name}`, FOREVER) : null;
    return asset ?? context.notFound();
  });
}
