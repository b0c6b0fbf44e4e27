import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeUtf8, errnoOf, messageOf } from '../../kernel/index.ts';
import type { Problems } from '../problems.ts';

/** The text of a file; null: it is missing, or unreadable and reported. */
export async function readIfThere(file: string, problems: Problems): Promise<string | null> {
  try {
    const text = decodeUtf8(await readFile(file));
    if (text === null) {
      const hint = 'save the file as UTF-8';
      problems.add({ source: file, seen: 'bytes that are not UTF-8', expected: 'a text in UTF-8', hint });
    }
    return text;
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') {
      problems.add({ source: file, seen: messageOf(error), expected: 'a readable file' });
    }
    return null;
  }
}

/**
 * The names of a folder's files with that ending, sorted; none if the folder is missing. A notice names every other file that
 * is neither hidden nor a README.md, so that no file is ignored silently. `foldersToo`: folders may be there.
 */
export async function listFiles(
  folder: string,
  ending: string,
  problems: Problems,
  { foldersToo = false }: { readonly foldersToo?: boolean } = {},
): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const names: string[] = [];
    for (const entry of entries) {
      const { name } = entry;
      if (name.startsWith('.') || /^readme(\.md)?$/i.test(name)) continue;
      if (entry.isDirectory()) {
        if (foldersToo) continue;
        problems.notices.push(`${join(folder, name)} is not read: move its files up into ${folder}`);
      } else if (name.endsWith(ending)) {
        names.push(name);
        if (entry.isSymbolicLink()) await requireTarget(join(folder, name), problems);
      } else {
        const wanted = `${name.replace(/\.[^.]*$/, '')}${ending}`;
        problems.notices.push(
          `${join(folder, name)} is not read: rename it to ${wanted}, or move it elsewhere`,
        );
      }
    }
    return names.sort();
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') {
      problems.add({ source: folder, seen: messageOf(error), expected: 'a readable folder' });
    }
    return [];
  }
}

async function requireTarget(link: string, problems: Problems): Promise<void> {
  await access(link).catch((error: unknown) => {
    if (errnoOf(error) !== 'ENOENT') return; // the reader reports it
    problems.add({ source: link, seen: 'a broken link', expected: 'a readable file' });
  });
}

/** Splits `agents/<slug>.md`: keys between two lines of `---`, then the persona. Without keys all is persona. Null: the keys never end. */
export function splitFrontMatter(text: string): { frontMatter: string; persona: string } | null {
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  if (lines[0]?.trimEnd() !== '---') return { frontMatter: '', persona: lines.join('\n').trim() };
  const end = lines.findIndex((line, place) => place > 0 && line.trimEnd() === '---');
  if (end === -1) return null;
  const [frontMatter, persona] = [lines.slice(1, end), lines.slice(end + 1)];
  return { frontMatter: frontMatter.join('\n'), persona: persona.join('\n').trim() };
}
