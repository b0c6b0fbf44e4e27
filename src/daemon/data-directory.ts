import { fullDiskError, makeDirectory, messageOf, ParleyError } from '../kernel/index.ts';

const CODE = 'DATA_DIRECTORY_UNWRITABLE';

/** `make`: for tests, in the place of the file system. */
export async function makeDataDirectory(
  path: string,
  make: (path: string) => Promise<unknown> = makeDirectory,
): Promise<void> {
  try {
    await make(path);
  } catch (error) {
    const full = fullDiskError(error, CODE, `the disk of the data directory ${path}`);
    if (full !== error) throw full;
    throw new ParleyError(CODE, `cannot make the data directory ${path}: ${messageOf(error)}`, {
      hint: 'name another with --data, or change its permissions',
      cause: error,
    });
  }
}
