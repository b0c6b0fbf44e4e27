import { constants } from 'node:fs';
import { type FileHandle, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { orNullIfMissing } from './errors.ts';
import type { ToolContext } from './tool.ts';

/** A stored output, opened; null: there is none. One that is no file of this machine is a nameless one while it is read. */
export async function openOutput(entry: string, context: ToolContext): Promise<FileHandle | null> {
  const { conversation, storedOutput } = context;
  if (storedOutput === undefined) {
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    return orNullIfMissing(open(context.outputs(conversation, entry), flags));
  }
  const content = await storedOutput(conversation, entry);
  return content === null ? null : openNameless(content);
}

/** Its name is gone before it is read: nothing outlives the reading. */
async function openNameless(content: string): Promise<FileHandle> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-output-'));
  try {
    const path = join(directory, 'output');
    await writeFile(path, content, { mode: 0o600 });
    return await open(path, constants.O_RDONLY);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
