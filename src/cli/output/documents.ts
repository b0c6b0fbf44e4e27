import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { PACKAGE } from '../../kernel/index.ts';
import type { Io } from '../io.ts';

/** Not a part of a longer path, so that a second pass changes nothing. */
const DOCUMENT = /(?<![\w./-])docs\/[a-z-]+\/[a-z-]+\.md\b/g;

/** Messages name documents as in a checkout. Elsewhere, this gives the path of the document in the package. */
export function withDocuments({ workingDirectory }: Pick<Io, 'workingDirectory'>, text: string): string {
  return text.replace(DOCUMENT, (path) => {
    const file = join(PACKAGE, path);
    if (existsSync(join(workingDirectory, path)) || !existsSync(file)) return path;
    const near = relative(workingDirectory, file);
    return near.startsWith('..') ? file : near;
  });
}
