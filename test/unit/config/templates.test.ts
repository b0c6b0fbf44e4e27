import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/index.ts';
import { folderOf } from './folder.ts';

const TEMPLATES = fileURLToPath(new URL('../../../templates', import.meta.url));

it.each(['team', 'single', 'workflow', 'support'])(
  'the template %s uses a real model after the edit that its parley.yaml describes, with the key in .env',
  async (template) => {
    const workingDirectory = await folderOf({ '.env': 'OPENAI_API_KEY=sk-from-file' });
    await cp(join(TEMPLATES, template), workingDirectory, { recursive: true });
    const file = join(workingDirectory, 'config/parley.yaml');
    const text = await readFile(file, 'utf8');
    const edited = text
      .replace(/^ {2}default: .*scripted.*\n/m, '')
      .replace(/^ {2}# default: /m, '  default: ');
    await writeFile(file, edited);
    const { models, notices, environmentFiles } = await loadConfig({ env: {}, workingDirectory });
    expect(models.default).toMatchObject({ provider: 'openai', model: 'gpt-5-mini' });
    expect(environmentFiles).toMatchObject([{ names: ['OPENAI_API_KEY'] }]);
    expect(notices).toEqual([]);
  },
);
