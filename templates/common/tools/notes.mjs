// The tool `mcp__notes__search`: finds paragraphs in the files of `notes/`.
import { readdir, readFile } from 'node:fs/promises';
import { serve } from './mcp.mjs';

const FOLDER = new URL('../notes/', import.meta.url);

async function search({ words }) {
  const wanted = words.toLowerCase().split(/\s+/);
  const found = [];
  for (const file of await readdir(FOLDER)) {
    const paragraphs = (await readFile(new URL(file, FOLDER), 'utf8')).split(/\n\s*\n/);
    found.push(...paragraphs.filter((text) => wanted.every((word) => text.toLowerCase().includes(word))));
  }
  return found.map((text) => text.trim()).join('\n\n') || `No note contains all of: ${words}`;
}

await serve('notes', {
  search: {
    description: 'Returns the paragraphs of the notes that contain all of these words.',
    arguments: { words: { type: 'string', description: 'words separated by spaces' } },
    run: search,
  },
});
