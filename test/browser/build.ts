import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** The console as it stands in `src/`, not as it was built some time ago. */
export default async function build(): Promise<void> {
  const script = fileURLToPath(new URL('../../scripts/build-console.mjs', import.meta.url));
  await promisify(execFile)(process.execPath, [script]);
}
