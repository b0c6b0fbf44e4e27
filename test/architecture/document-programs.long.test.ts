import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { createCompiler } from '../support/compiler.ts';
import { type Block, blocksOf, type Page, ROOT, readPages } from '../support/pages.ts';

/** The programs in the documents. That their code parses is tested with the other code of each page. */

const compile = createCompiler({
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  allowImportingTsExtensions: true,
  target: ts.ScriptTarget.ES2023,
  module: ts.ModuleKind.NodeNext,
  types: ['node'],
  paths: {
    parleyd: [join(ROOT, 'src/index.ts')],
    'parleyd/client': [join(ROOT, 'src/client/index.ts')],
  },
});

/** Compiles programs as if each were a file of a project that has the package `parleyd`. */
function typeFaults(blocks: readonly Block[]): string[] {
  const files = new Map(
    blocks.map(({ text }, at) => [join(ROOT, `.document-${at}.ts`), `${text}\nexport {};`] as const),
  );
  const compiled = compile([...files.keys()], files);
  return [...files.keys()].flatMap((path, at) =>
    ts
      .getPreEmitDiagnostics(compiled, compiled.getSourceFile(path))
      .map(
        ({ messageText }) => `line ${blocks[at]?.line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
      ),
  );
}

const programsOf = (page: Page) => blocksOf(page).filter(({ language }) => language === 'ts');

it('the TypeScript in the documents compiles with the types of the client library', {
  timeout: 240_000,
}, async () => {
  const programs = (await readPages()).flatMap(programsOf);
  expect(programs.length).toBeGreaterThan(3);
  expect(typeFaults(programs)).toEqual([]);
});

it('TypeScript that does not match the client library is a fault', { timeout: 180_000 }, () => {
  const text =
    "```ts\nimport { connect } from 'parleyd/client';\n(await connect({ url: 'u' })).shout('x');\n```";
  expect(typeFaults(programsOf({ path: 'docs/example.md', text })).join()).toContain("'shout'");
});
