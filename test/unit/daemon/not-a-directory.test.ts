import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { makeDataDirectory } from '../../../src/daemon/compose/data-directory.ts';
import { exportConversation, fsck, importConversation } from '../../../src/daemon/index.ts';
import { holdDirectory, openFileSource, openFileTarget } from '../../../src/persistence/jsonl/index.ts';
import { folderPerTest } from '../../support/lifetime.ts';

describe('a data directory that is a file', () => {
  const folder = folderPerTest();
  let file: string;
  beforeEach(async () => {
    file = join(folder, 'file');
    await writeFile(file, '[]');
  });

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

const failing = (code: string) => () =>
  Promise.reject(Object.assign(new Error(`${code}: mkdir '/data'`), { code }));

describe('a data directory that cannot be created', () => {
  it.each([
    ['ENOSPC', /^free space on the disk of the data directory/],
    ['EDQUOT', /^free space on the disk of the data directory/],
    ['EACCES', /change its permissions$/],
  ])('for %s is refused with a hint', async (code, hint) => {
    const made = makeDataDirectory('/data', failing(code));
    await expect(made).rejects.toMatchObject({
      code: 'DATA_DIRECTORY_UNWRITABLE',
      message: expect.stringContaining(code),
      hint: expect.stringMatching(hint),
    });
  });
});
