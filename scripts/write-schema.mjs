// `npm run schema`: writes config/parley.schema.json from the schema that the daemon itself checks with.
import { writeFile } from 'node:fs/promises';
import { register } from 'tsx/esm/api';

register();
const { configJsonSchema } = await import('../src/config/index.ts');
const file = new URL('../config/parley.schema.json', import.meta.url);
await writeFile(file, `${JSON.stringify(await configJsonSchema(), null, 2)}\n`);
