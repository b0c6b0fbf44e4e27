// `npm run reference`: writes the generated parts of documents.
import { mkdir, writeFile } from 'node:fs/promises';
import { register } from 'tsx/esm/api';

register();
const { referencePages } = await import('./reference.ts');
const root = new URL('../', import.meta.url);
for (const [path, text] of await referencePages(root)) {
  const file = new URL(path, root);
  await mkdir(new URL('./', file), { recursive: true });
  await writeFile(file, text);
}
