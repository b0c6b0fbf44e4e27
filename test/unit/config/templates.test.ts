import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/index.ts';
import { newFolder } from '../../support/lifetime.ts';

const TEMPLATES = fileURLToPath(new URL('../../../templates', import.meta.url));

it.each(['team', 'single', 'workflow', 'support'])(
  'the template %s answers from its script without a key, and from a real model with one in .env',
  async (template) => {
    const workingDirectory = await newFolder({ 'README.md': '' });
    for (const part of ['common', template])
      await cp(join(TEMPLATES, part), workingDirectory, { recursive: true });
    const offline = await loadConfig({ env: {}, workingDirectory });
    const script = join(workingDirectory, 'config/script.yaml');
    expect(offline.models.default).toMatchObject({ provider: 'scripted', model: 'scripted', script });
    expect(offline.notices).toEqual([expect.stringContaining('OPENAI_API_KEY is not set')]);
    await writeFile(join(workingDirectory, '.env'), 'OPENAI_API_KEY=sk-from-file');
    const { models, notices, environmentFiles } = await loadConfig({ env: {}, workingDirectory });
    expect(models.default).toMatchObject({ provider: 'openai', model: 'gpt-5-mini' });
    expect(environmentFiles).toMatchObject([{ names: ['OPENAI_API_KEY'] }]);
    expect(notices).toEqual([]);
  },
);
