import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const LICENCE_FILE = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i;

/**
 * A plugin of Rolldown and Vite: writes NOTICES.txt, the licences of the packages whose code or fonts are in the output of each build
 * that uses it.
 */
export function notices() {
  const folders = new Set();
  let root = '';
  return {
    name: 'notices',
    configResolved: (config) => {
      root = config.root;
    },
    async generateBundle(_, output) {
      const modules = Object.values(output).flatMap((file) =>
        file.type === 'chunk' ? file.moduleIds : file.originalFileNames.map((name) => join(root, name)),
      );
      for (const folder of modules.flatMap(packageOf)) folders.add(folder);
      const texts = await Promise.all([...folders].map(noticeOf));
      const source = `This folder contains code of these packages.\n\n${texts.sort().join('\n')}`;
      this.emitFile({ type: 'asset', fileName: 'NOTICES.txt', source });
    },
  };
}

/** The last package folder in a path; none for a module of our own. */
function packageOf(module) {
  const [folder] = /^.*[/\\]node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+/.exec(module) ?? [];
  return folder === undefined ? [] : [folder.replace(/^\0/, '')];
}

async function noticeOf(folder) {
  const { name, version, license, author } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  if (typeof license !== 'string') throw new Error(`${folder} names no licence in its package.json`);
  const files = (await readdir(folder)).filter((file) => LICENCE_FILE.test(file)).sort();
  const texts = await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
  const holder = author?.name ?? author;
  const body = texts.length > 0 ? texts.join('\n') : holder ? `Copyright ${holder}` : '';
  return `---- ${name} ${version} (${license}) ----\n\n${body.trim()}\n`;
}
