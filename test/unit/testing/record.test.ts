import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import { type ModelFunction, recordedScript } from '../../../src/models/index.ts';
import { parseScript } from '../../../src/models/scripted/script.ts';
import type { TestTeam } from '../../../src/testing/index.ts';
import { newFolder } from '../../support/lifetime.ts';
import { toolCall } from '../../support/log.ts';
import { BACK, FRONT, start } from './support.ts';

/** What agents said and called, and what they got. */
const substanceOf = (entries: readonly Entry[]) =>
  entries.flatMap((entry) =>
    entry.type === 'message' ? [[entry.author.id, entry.role, entry.content, entry.tool_calls]] : [],
  );

/** Runs the same posts with functions and with the script recorded from them. */
async function compare(
  files: Readonly<Record<string, string>>,
  models: Readonly<Record<string, ModelFunction>> | undefined,
  act: (team: TestTeam) => Promise<unknown>,
): Promise<readonly Entry[]> {
  const config = await newFolder(files);
  const first = await start({ config, ...(models && { models }) });
  await act(first);
  const script = join(config, 'recorded.yaml');
  await writeFile(script, recordedScript('test', first.entries()));
  const again = await start({ config, models: script });
  await act(again);
  expect(substanceOf(again.entries())).toEqual(substanceOf(first.entries()));
  return again.entries();
}

const TEAM = {
  ...FRONT,
  ...BACK,
  'parley.yaml': 'defaultAgent: front\nretry: { attempts: 3, baseMs: 1, maxMs: 1 }\n',
};

describe('the script recorded from a conversation', () => {
  it('repeats delegations, handoffs and questions of several agents', async () => {
    const entries = await compare(
      TEAM,
      {
        front: ({ last, tool }) => {
          if (tool === 'delegate') return [{ name: 'ask', arguments: { question: 'Red or blue?' } }];
          if (tool === 'ask')
            return [{ name: 'handoff', arguments: { to: 'back', summary: `Paint: ${last}` } }];
          return {
            text: 'One moment.',
            toolCalls: [{ name: 'delegate', arguments: { to: 'back', request: last } }],
          };
        },
        back: ({ last }) => `Back read: ${last}`,
      },
      async (team) => {
        await team.say('paint it');
        await team.answer('red');
        await team.say('again');
      },
    );
    expect(entries.filter(({ type }) => type === 'handoff')).toHaveLength(1);
  });

  it('repeats texts that look like placeholders, and arguments as the model wrote them', async () => {
    const texts = [
      '{{last}} and {{unknown}}',
      '- "x": y\n\n  # no comment\n',
      '<<: *a',
      '\u0007 é 😀',
      'yes',
    ];
    let turn = 0;
    await compare(
      TEAM,
      {
        default: ({ tool }) =>
          tool
            ? (texts[turn++] ?? '')
            : [{ name: 'delegate', arguments: { to: 'none', '<<': { a: 1 }, n: 1e21 } }],
      },
      async (team) => {
        for (const text of texts) await team.say(text);
      },
    );
  });

  it('repeats a failure once, with its code and its message', async () => {
    let calls = 0;
    const entries = await compare(
      TEAM,
      { default: () => (++calls < 4 ? Object.assign(new Error('busy'), { status: 503 }) : 'Now.') },
      async (team) => {
        await team.say('first');
        await team.say('second');
      },
    );
    expect(JSON.stringify(entries)).toContain('busy. Tried 3 times.');
    expect(calls).toBe(4);
  });

  it('keeps arguments that are no JSON, or that YAML would change', () => {
    const call = (text: string) => toolCall('x', text, '');
    const given = [
      '{"a": 1, "b": "x y"}',
      '{not json',
      '{"n": 12345678901234567890}',
      '{"__proto__": {"a": 1}}',
      '[1]',
    ];
    const message = {
      ...{
        index: 4,
        id: 'a',
        createdAt: '',
        type: 'message' as const,
        role: 'assistant' as const,
        content: null,
      },
      author: { kind: 'agent' as const, id: 'front', name: 'Front' },
      tool_calls: given.map(call),
    };
    const [rule] = parseScript('recorded.yaml', recordedScript('test', [message])).rules;
    expect(rule?.reply.tool_calls.map((one) => one.arguments)).toEqual([
      { a: 1, b: 'x y' },
      ...given.slice(1),
    ]);
  });

  it('of a conversation without an answer says so when it is loaded', () => {
    expect(() => parseScript('recorded.yaml', recordedScript('test', []))).toThrow('rules');
  });
});
