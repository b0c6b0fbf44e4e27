// `node scripts/write-release-text.mjs v0.1.0`: prints the release's text, the section of CHANGELOG.md; fails if the tag does
// not fit the packages or the changelog.
import { readFile } from 'node:fs/promises';
import { register } from 'tsx/esm/api';

register();
const { releaseText } = await import('./release.ts');

const read = (name) => readFile(new URL(`../${name}`, import.meta.url), 'utf8');
try {
  const text = releaseText({
    tag: process.argv[2] ?? '',
    changelog: await read('CHANGELOG.md'),
    parleyd: JSON.parse(await read('package.json')),
    createParleyd: JSON.parse(await read('packages/create-parleyd/package.json')),
  });
  console.log(text);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
