import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { exportConversation, fsck, importConversation } from '../../../src/daemon/index.ts';
import { holdDirectory, openFileSource, openFileTarget } from '../../../src/persistence/jsonl/index.ts';

describe('a data directory that is a file', () => {
  let folder: string;
  let file: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'parley-not-a-directory-'));
    file = join(folder, 'file');
    await writeFile(file, '[]');
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const commands: Record<string, (data: string) => Promise<unknown>> = {
    fsck: (dataDirectory) => fsck({ dataDirectory, repair: false }),
    'fsck --repair': (dataDirectory) => fsck({ dataDirectory, repair: true }),
    'migrate --from': openFileSource,
    'migrate --to': openFileTarget,
    export: (data) => exportConversation(data, 'one', 'openai'),
    'import of messages': async (dataDirectory) => {
      await writeFile(file, '[{"role":"user","content":"x"}]');
      await importConversation({ dataDirectory, file, conversation: 'one', agent: 'assistant' });
    },
    'import of what is refused': (dataDirectory) =>
      importConversation({ dataDirectory, file, conversation: 'one', agent: 'assistant' }),
    'up --store jetstream': holdDirectory,
  };
  it.each(Object.keys(commands))(
    'is refused by %s with a hint, since it is not a directory',
    async (name) => {
      for (const data of [file, join(file, 'below')]) {
        await expect(commands[name]?.(data)).rejects.toMatchObject({
          code: expect.stringMatching(/^(USAGE_NO_DATA|DATA_DIRECTORY_UNWRITABLE)$/),
          message: `${data} is not a directory`,
          hint: expect.stringContaining('--data DIR'),
        });
      }
    },
  );
});
