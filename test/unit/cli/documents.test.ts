import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withDocuments } from '../../../src/cli/context.ts';
import { ROOT } from '../../support/pages.ts';

describe('documents that messages name', () => {
  it('a message names the document in the package, relative to a folder above it', () => {
    const text = 'see docs/guides/troubleshooting.md.';
    const inside = withDocuments({ workingDirectory: join(ROOT, '..') }, text);
    expect(inside).toMatch(/^see [\w-]+\/docs\/guides\/troubleshooting\.md\.$/);
    const elsewhere = withDocuments({ workingDirectory: '/nowhere' }, text);
    expect(elsewhere).toBe(`see ${join(ROOT, 'docs/guides/troubleshooting.md')}.`);
  });

  it('a path that is complete already stays as it is', () => {
    for (const workingDirectory of [join(ROOT, '..'), '/nowhere']) {
      const once = withDocuments({ workingDirectory }, 'see docs/guides/troubleshooting.md');
      expect(withDocuments({ workingDirectory }, once)).toBe(once);
    }
  });

  it('a message keeps the path in a checkout, and the path of a document that does not exist', () => {
    expect(withDocuments({ workingDirectory: ROOT }, 'docs/spec/wire.md')).toBe('docs/spec/wire.md');
    expect(withDocuments({ workingDirectory: '/nowhere' }, 'docs/spec/no.md')).toBe('docs/spec/no.md');
  });

  it('every document and example that the source names is in the package', async () => {
    const { files } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const sources = (await readdir(join(ROOT, 'src'), { recursive: true })).filter((path) =>
      /\.tsx?$/.test(path),
    );
    const texts = await Promise.all(sources.map((path) => readFile(join(ROOT, 'src', path), 'utf8')));
    const pattern =
      /\b(?:docs|examples|config|deploy|scripts|bench|templates)\/[\w-]+\/?[\w./-]*\.(?:md|ya?ml|json|ts|mjs|py)\b/g;
    const named = [...new Set(texts.flatMap((text) => text.match(pattern) ?? []))].filter(
      (path) => !/^config\/agents/.test(path),
    );
    expect(named.length).toBeGreaterThan(10);
    for (const path of named) {
      expect(
        files.some((one: string) => path === one || path.startsWith(`${one}/`)),
        path,
      ).toBe(true);
      if (path.startsWith('docs/')) await stat(join(ROOT, path));
    }
  });
});
