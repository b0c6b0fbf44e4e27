// `npm run schema`: writes config/*.schema.json from the schemas that the daemon itself checks with.
import { writeFile } from 'node:fs/promises';
import { register } from 'tsx/esm/api';

register();
const { editorSchemas } = await import('../src/config/index.ts');
for (const [name, schema] of Object.entries(await editorSchemas()))
  await writeFile(new URL(`../config/${name}`, import.meta.url), `${JSON.stringify(schema, null, 2)}\n`);
