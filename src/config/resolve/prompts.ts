import { join } from 'node:path';
import { PACKAGE } from '../../kernel/index.ts';
import { listFiles, readIfThere } from '../files/read-file.ts';
import type { Problems } from '../problems/problems.ts';
import type { PromptTexts } from '../schema/config.ts';

const FILES = { baseChat: 'chat.md', baseRun: 'run.md', toolPolicy: 'tools.md' } as const satisfies Record<
  keyof PromptTexts,
  string
>;

/** The shipped configuration folder. */
export const SHIPPED_CONFIG: string = join(PACKAGE, 'config');

/** Reads `prompts/*.md`; a missing prompt is taken from the shipped folder. */
export async function loadPrompts(
  directory: string,
  problems: Problems,
  notices: string[],
): Promise<PromptTexts> {
  const known: readonly string[] = Object.values(FILES);
  for (const name of await listFiles(join(directory, 'prompts'), '.md', problems, notices)) {
    if (!known.includes(name)) {
      notices.push(`${join(directory, 'prompts', name)} is not read: the prompts are ${known.join(', ')}`);
    }
  }
  const read = async (name: string) => {
    const own = await readIfThere(join(directory, 'prompts', name), problems);
    const text = own ?? (await readIfThere(join(SHIPPED_CONFIG, 'prompts', name), problems));
    return (text ?? '').replaceAll('\r\n', '\n').trim();
  };
  return {
    baseChat: await read(FILES.baseChat),
    baseRun: await read(FILES.baseRun),
    toolPolicy: await read(FILES.toolPolicy),
  };
}
