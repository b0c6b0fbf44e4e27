import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createBuiltInTools } from '../../../src/tools/index.ts';

/** Writes more than the system permits (the caller sets a limit), then a small file. Prints the results as JSON. */
const [project = ''] = process.argv.slice(2);
const tools = createBuiltInTools({ project });
const { signal } = new AbortController();

function run(name: string, given: Record<string, unknown>) {
  const call = { conversation: 'work', agent: 'dev', turnId: 'turn', idempotencyKey: 'key' };
  return tools.run({ ...call, name, arguments: given }, signal);
}

const path = '@project/a';
const outcomes = [
  await run('fs_write', { path, content: 'old' }),
  await run('fs_write', { path, content: 'x'.repeat(100_000) }),
  await run('fs_edit', { path, find: 'old', replace: 'y'.repeat(100_000) }),
  await run('fs_write', { path: '@project/b', content: 'x'.repeat(100_000) }),
];
const kept = await readFile(join(project, 'a'), 'utf8');
outcomes.push(await run('fs_write', { path, content: 'small' }));
const names = (await readdir(project)).sort();
process.stdout.write(`${JSON.stringify({ outcomes, kept, names })}\n`);
