import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { createCompiler } from '../support/compiler.ts';
import { ROOT } from './cruise.ts';

/** An entry type that is added has to be handled everywhere: the compiler names each place. Without one, `npm test` compiles them. */

const ENTRY = join(ROOT, 'src/conversation/log/entry.ts');
const TRAITS = join(ROOT, 'src/conversation/log/entry-traits.ts');

const TABLE = 'src/conversation/log/entry-traits.ts';
const FOLD = 'src/conversation/state/evolve.ts';
const KNOWLEDGE = 'src/conversation/state/knowledge.ts';
const WORDS = ['src/conversation/view/view.ts', 'src/conversation/reduction/summary-text.ts'];
const OTHERS = [
  'src/conversation/progress/turn-watch.ts',
  'src/conversation/log/words.ts',
  'src/conversation/progress/progress.ts',
  'src/daemon/observe/telemetry.ts',
  'test/chaos/checks/views.ts',
  'src/console/model/thread/blocks.ts',
  'src/console/model/thread/thread.ts',
  'src/console/model/timeline/lanes.ts',
];
const PLACES = [TABLE, FOLD, KNOWLEDGE, ...WORDS, ...OTHERS];

const { config } = ts.readConfigFile(join(ROOT, 'src/console/tsconfig.json'), ts.sys.readFile);
const compile = createCompiler(
  ts.parseJsonConfigFileContent(config, ts.sys, join(ROOT, 'src/console')).options,
);

/** The files among `PLACES` that do not compile when these files read otherwise. */
function broken(changed: ReadonlyMap<string, string>): string[] {
  const program = compile(
    PLACES.map((file) => join(ROOT, file)),
    changed,
  );
  return PLACES.filter((file) => {
    const source = program.getSourceFile(join(ROOT, file));
    return source === undefined || program.getSemanticDiagnostics(source).length > 0;
  });
}

function edited(file: string, before: string, after: string): string {
  const text = readFileSync(file, 'utf8');
  expect(text.split(before)).toHaveLength(2);
  return text.replace(before, after);
}

const oneMoreType = () =>
  edited(ENTRY, "  'title-set': {", "  'colour-set': { colour: z.string() },\n  'title-set': {");
const oneMoreRow = (traits: string) =>
  edited(TRAITS, "  'title-set': {", `  'colour-set': { ${traits}, ...RESULT },\n  'title-set': {`);

const brokenWith = (traits: string) =>
  broken(
    new Map([
      [ENTRY, oneMoreType()],
      [TRAITS, oneMoreRow(traits)],
    ]),
  );

describe('one more entry type', { timeout: 180_000 }, () => {
  it('another entry type does not compile without a row of traits', () => {
    expect(broken(new Map([[ENTRY, oneMoreType()]]))).toContain(TABLE);
  });

  it('a hidden entry type does not compile until the fold, the knowledge of agents and each renderer handle it', () => {
    expect(brokenWith('...HIDDEN')).toEqual([FOLD, KNOWLEDGE, ...OTHERS]);
  });

  it('an entry type that agents see does not compile until the view and the summary have a text for it', () => {
    expect(brokenWith('...NOTICE')).toEqual([FOLD, ...WORDS, ...OTHERS]);
  });

  it('an entry type that is routed or in the away block does not compile until both lists name it', () => {
    expect(brokenWith("shownTo: 'all', isRouted: true, isInAwayBlock: true")).toEqual([
      TABLE,
      FOLD,
      ...WORDS,
      ...OTHERS,
    ]);
  });
});
