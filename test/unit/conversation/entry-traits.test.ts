import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { z } from 'zod';
import {
  ENTRY_TRAITS,
  type Entry,
  type EntryType,
  type entrySchema,
  evolve,
  Knowledge,
  routedTo,
  traitsOf,
} from '../../../src/conversation/index.ts';
import { EMPTY_STATE } from '../../../src/conversation/state/state.ts';
import { createCompiler } from '../../support/compiler.ts';

const ROOT = join(import.meta.dirname, '../../..');
const ENTRY = join(ROOT, 'src/conversation/log/entry.ts');
const TRAITS = join(ROOT, 'src/conversation/log/entry-traits.ts');

const TABLE = 'src/conversation/log/entry-traits.ts';
const FOLD = 'src/conversation/state/evolve.ts';
const KNOWLEDGE = 'src/conversation/state/knowledge.ts';
const WORDS = ['src/conversation/view/view.ts', 'src/conversation/reduction/summary-extract.ts'];
const OTHERS = [
  'src/conversation/progress/turn-watch.ts',
  'src/cli/render/events.ts',
  'src/gateway/mcp/render.ts',
  'src/gateway/progress/progress.ts',
  'src/daemon/telemetry.ts',
  'src/chaos/checks/views.ts',
  'src/console/model/blocks.ts',
  'src/console/model/thread.ts',
  'src/console/model/lanes.ts',
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
  edited(
    ENTRY,
    "  'title-set': {",
    "  'colour-set': { ...commonFields, type: z.literal('colour-set'), colour: z.string() },\n  'title-set': {",
  );
const oneMoreRow = (traits: string) =>
  edited(TRAITS, "  'title-set': {", `  'colour-set': { ${traits}, ...RESULT },\n  'title-set': {`);

describe('one more entry type', { timeout: 180_000 }, () => {
  it('changes nothing as long as there is none: every place compiles', () => {
    expect(broken(new Map())).toEqual([]);
  });

  it('does not compile without a row of traits', () => {
    expect(broken(new Map([[ENTRY, oneMoreType()]]))).toContain(TABLE);
  });

  it('that no agent is shown does not compile in the fold, the knowledge of agents and each renderer', () => {
    const row = oneMoreRow('...HIDDEN');
    const changed = new Map([
      [ENTRY, oneMoreType()],
      [TRAITS, row],
    ]);
    expect(broken(changed)).toEqual([FOLD, KNOWLEDGE, ...OTHERS]);
  });

  it('that agents are shown does not compile until the view and the summary have words for it', () => {
    const row = oneMoreRow('...NOTICE');
    const changed = new Map([
      [ENTRY, oneMoreType()],
      [TRAITS, row],
    ]);
    expect(broken(changed)).toEqual([FOLD, ...WORDS, ...OTHERS]);
  });

  it('that is routed or in the away block does not compile until both lists name it', () => {
    const row = oneMoreRow("shownTo: 'all', isRouted: true, isInAwayBlock: true");
    const changed = new Map([
      [ENTRY, oneMoreType()],
      [TRAITS, row],
    ]);
    expect(broken(changed)).toEqual([TABLE, FOLD, ...WORDS, ...OTHERS]);
  });

  it('has a schema: the union that reads logs covers the table', () => {
    expectTypeOf<z.infer<typeof entrySchema>['type']>().toEqualTypeOf<EntryType>();
    expect(Object.keys(ENTRY_TRAITS)).toHaveLength(24);
  });
});

describe('an entry type of a newer version', () => {
  const author = { kind: 'person', id: 'alice', name: 'Alice' } as const;

  it.each(['colour-set', 'constructor', '__proto__'])(
    '%s is shown to no agent and routed to none, and the fold passes it over',
    (type) => {
      const entry = { index: 0, id: 'a', createdAt: '', author, to: ['pm'], content: 'hi', type };
      const unknown = entry as unknown as Entry;
      expect(traitsOf(unknown)).toEqual({
        shownTo: 'none',
        isRouted: false,
        isInAwayBlock: false,
        isProgress: true,
        isMachinery: false,
      });
      expect(routedTo(unknown)).toEqual([]);
      expect(evolve(EMPTY_STATE, unknown)).toEqual({ ...EMPTY_STATE, length: 1, updatedAt: '' });
      const knowledge = new Knowledge('pm', { includeCollapsed: false });
      knowledge.catchUp([unknown]);
      expect(knowledge.history).toEqual([]);
    },
  );
});
