import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ParleyError } from '../kernel/index.ts';

/** The folder of the built console. In a file of its own: the public types of the daemon name no package of HTTP. */

export const PAGE = 'index.html';

export const hasConsole = (folder: string): boolean => existsSync(join(folder, PAGE));

/** A checkout whose console `npm ci` did not build, as with `ignore-scripts`. */
export function consoleMissing(): ParleyError {
  return new ParleyError('CONSOLE_MISSING', 'the console is not built here; everything else works', {
    hint: 'run `npm run build:console` in the checkout of Parley, then reload the page; the daemon needs no restart',
  });
}
