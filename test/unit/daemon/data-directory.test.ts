import { describe, expect, it } from 'vitest';
import { makeDataDirectory } from '../../../src/daemon/compose/data-directory.ts';

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
