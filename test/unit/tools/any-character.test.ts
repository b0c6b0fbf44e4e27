import { describe, expect, it, vi } from 'vitest';
import type { ToolOutcome } from '../../../src/agents/tool-port.ts';
import { DEFAULT_VIEW_POLICY } from '../../../src/conversation/index.ts';
import { CHARACTERS, CHARACTER_TEXTS as TEXTS } from '../../support/characters.ts';
import { logOf, said } from '../conversation/recall-log.ts';
import { inYard, type Yard } from './support.ts';

// Work that is bounded by its rounds, not by a clock: a busy machine may take its time.
vi.setConfig({ testTimeout: 120_000 });

const ALICE = { kind: 'person', id: 'alice', name: 'Alice' } as const;
/** Whatever is looked for is found. */
const log = logOf(said(ALICE, TEXTS.join(' ')), ...TEXTS.map((text) => said(ALICE, text)));
const conversations = { entriesOf: async () => log, viewPolicyOf: () => DEFAULT_VIEW_POLICY };

const argumentsOf: Readonly<Record<string, (text: string) => Record<string, unknown>[]>> = {
  recall: (text) => [{ query: text }, { query: `"${text}"` }],
  fs_read: (text) => [
    { path: text },
    { path: `@project/${text}` },
    { path: `@state/logs/tool-results/${text}` },
  ],
  fs_list: (text) => [{ path: text }, { path: `@project/${text}` }],
  fs_search: (text) => [
    { query: text },
    { query: text, ignoreCase: true },
    { query: 'x', path: `@project/${text}` },
  ],
  fs_write: (text) => [
    { path: 'written', content: text },
    { path: `@project/new/${text}`, content: text },
  ],
  fs_edit: (text) => [
    { path: '@project/all', find: text, replace: text, all: true },
    { path: `@project/${text}`, find: 'a', replace: text },
  ],
  shell: (text) => [{ command: `: ${text}` }, { command: ':', cwd: `@project/${text}` }],
};

const unexplained = (outcome: ToolOutcome) =>
  outcome.kind === 'aborted' ||
  (outcome.kind === 'failed' && ['TOOL_FAILED', 'TIMEOUT', 'NO_RESULT'].includes(outcome.code));

async function unexplainedCalls(yard: Yard, name: string, texts: readonly string[]): Promise<unknown[]> {
  const bad: unknown[] = [];
  for (const text of texts) {
    for (const given of argumentsOf[name]?.(text) ?? []) {
      const outcome = await yard.run(name, given);
      if (unexplained(outcome)) bad.push({ given, outcome });
    }
  }
  return [...bad, ...yard.logged];
}

describe('any character in a text argument', () => {
  it(
    'is tried with every tool that Parley brings',
    inYard(async ({ tools }) => {
      expect([...tools.definitions().keys()].sort()).toEqual(Object.keys(argumentsOf).sort());
    }),
  );

  it.each(Object.keys(argumentsOf))(
    'gives an answer or a reason from %s, never a fault of the tool',
    (name) =>
      inYard(
        async (yard) => {
          await yard.file('project/all', TEXTS.join('\n'));
          // A process for each command: those characters are enough that a shell reads in its own way.
          const texts = name === 'shell' ? CHARACTERS : TEXTS;
          expect(await unexplainedCalls(yard, name, texts)).toEqual([]);
        },
        { conversations },
      )(),
  );
});
