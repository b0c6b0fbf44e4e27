import { describe, expect, it, vi } from 'vitest';
import type { ToolOutcome } from '../../../src/agents/tool-port.ts';
import { DEFAULT_VIEW_POLICY } from '../../../src/conversation/index.ts';
import { CHARACTERS, CHARACTER_TEXTS as TEXTS } from '../../support/characters.ts';
import { hasLongTests } from '../../support/runs.ts';
import { logOf, said } from '../conversation/recall-log.ts';
import { openTools, type TestTools } from './support.ts';

// Bounded by rounds instead of time, so that the test does not depend on the load of the machine.
vi.setConfig({ testTimeout: 120_000 });

const ALICE = { kind: 'person', id: 'alice', name: 'Alice' } as const;
/** Every argument that has to match something matches. */
const log = logOf(said(ALICE, TEXTS.join(' ')), ...TEXTS.map((text) => said(ALICE, text)));
const conversations = { entriesOf: async () => log, viewPolicyOf: () => DEFAULT_VIEW_POLICY };

const argumentsOf: Readonly<Record<string, (text: string) => Record<string, unknown>[]>> = {
  recall: (text) => [{ query: text }, { query: `"${text}"` }],
  fs_read: (text) => [
    { path: text },
    { path: `@project/${text}` },
    { path: `@state/logs/tool-results/${text}` },
    { path: `@blob/${text}` },
  ],
  attach: (text) => [{ path: text }, { path: `@project/${text}` }, { path: `@blob/${text}` }],
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
  permit_edit: (text) => [{ path: text, title: text, input: text, shown: text }],
  permit_execute: (text) => [{ command: text, title: text }],
  permit_other: (text) => [{ kind: text, title: text }],
  shell: (text) => [{ command: `: ${text}` }, { command: ':', cwd: `@project/${text}` }],
};

const unexplained = (outcome: ToolOutcome) =>
  outcome.kind === 'aborted' ||
  (outcome.kind === 'failed' && ['TOOL_FAILED', 'TIMEOUT', 'NO_RESULT'].includes(outcome.code));

async function unexplainedCalls(
  toolbox: TestTools,
  name: string,
  texts: readonly string[],
): Promise<unknown[]> {
  const bad: unknown[] = [];
  for (const text of texts) {
    for (const given of argumentsOf[name]?.(text) ?? []) {
      const outcome = await toolbox.run(name, given);
      if (unexplained(outcome)) bad.push({ given, outcome });
    }
  }
  return [...bad, ...toolbox.logged];
}

describe('any character in a text argument', () => {
  it('the test covers every built-in tool', async () => {
    const { tools } = await openTools();
    expect([...tools.definitions().keys()].sort()).toEqual(Object.keys(argumentsOf).sort());
  });

  it.each(Object.keys(argumentsOf))(
    '%s returns a result or a refusal for any text, never an internal error',
    async (name) => {
      const toolbox = await openTools({ conversations });
      await toolbox.file('project/all', TEXTS.join('\n'));
      // Each command starts a process, so only characters that may have a meaning in the shell are tried.
      const special = CHARACTERS.filter((one) => !/^[a-z0-9]$/i.test(one));
      const sample = special.filter((_, place) => hasLongTests || place % 3 === 0);
      const texts = name === 'shell' ? sample : TEXTS;
      expect(await unexplainedCalls(toolbox, name, texts)).toEqual([]);
    },
  );
});
