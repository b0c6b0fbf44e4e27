import { z } from 'zod';
import { ParleyError } from '../../../kernel/index.ts';
import { completed } from '../../guarded.ts';
import { defineTool, FILES_TIMEOUT_MS, PROJECT_PATH, WRITES } from '../tool.ts';
import { projectNames } from './list.ts';
import { pathRefused } from './names.ts';
import { replaceFile } from './replace.ts';
import { aliasOf, openParent, openSandbox } from './sandbox.ts';

const WRITE_BYTES = 1024 * 1024;

const schema = z.strictObject({
  path: PROJECT_PATH,
  content: z.string().describe('the whole content of the file, as it is to be'),
});

export const writeTool = defineTool({
  name: 'fs_write',
  description:
    'Write a whole file: makes it, with the folders that are missing, or replaces all that it held. At most 1 MiB. To change a part of a file, use fs_edit.',
  risk: 'risky',
  subject: WRITES,
  timeoutMs: FILES_TIMEOUT_MS,
  schema,
  run: async ({ path, content }, context) => {
    const names = fileNames(path, projectNames(path, context));
    const bytes = Buffer.from(content, 'utf8');
    if (bytes.length > WRITE_BYTES) {
      const message = `${bytes.length} bytes are more than the ${WRITE_BYTES} that one call may write`;
      throw new ParleyError('TOO_LARGE', message, { hint: 'write several files' });
    }
    const sandbox = openSandbox(context.project, context.closed, context);
    const { folder, name } = await openParent(sandbox, names, { make: true });
    try {
      const { created } = await replaceFile({ folder, name, names, content: bytes, signal: context.signal });
      return completed(`${created ? 'Created' : 'Replaced'} ${aliasOf(names)} (${bytes.length} bytes).`);
    } finally {
      await folder.handle.close();
    }
  },
});

/** The components of a path that must name a file. */
export function fileNames(path: string, names: readonly string[]): readonly string[] {
  if (path.endsWith('/') || names.length === 0) throw pathRefused(path, 'that is a folder');
  return names;
}
