import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** Builds the console from `src/`, so that no old build is tested. */
export default async function build(): Promise<void> {
  const script = fileURLToPath(new URL('../../scripts/build-console.mjs', import.meta.url));
  await promisify(execFile)(process.execPath, [script]);
}
