import { readdir, readFile } from 'node:fs/promises';
import { tool } from 'parleyd';
import { z } from 'zod';

const FOLDER = 'notes'; // in the folder in which the daemon was started

/** Finds paragraphs in the files of `notes/`. */
export default tool({
  name: 'notes',
  description: 'Returns the paragraphs of the notes that contain all of these words.',
  input: z.object({ words: z.string().describe('words separated by spaces') }),
  risk: 'safe',
  run: async ({ words }) => {
    const wanted = words.toLowerCase().split(/\s+/);
    const found: string[] = [];
    for (const file of await readdir(FOLDER)) {
      const paragraphs = (await readFile(`${FOLDER}/${file}`, 'utf8')).split(/\n\s*\n/);
      found.push(...paragraphs.filter((text) => wanted.every((word) => text.toLowerCase().includes(word))));
    }
    return found.map((text) => text.trim()).join('\n\n') || `No note contains all of: ${words}`;
  },
});
