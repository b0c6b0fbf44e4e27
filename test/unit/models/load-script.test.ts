import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ParleyError } from '../../../src/kernel/index.ts';
import { createOfflineModel, loadScript } from '../../../src/models/index.ts';
import { parseScript } from '../../../src/models/scripted/script.ts';
import { errorWith } from '../../support/error-with.ts';
import { ask, replyTo, requestOf } from './scripted-support.ts';

let folder: string | null = null;
afterEach(async () => {
  if (folder !== null) await rm(folder, { recursive: true });
  folder = null;
});

function refusalOf(yaml: string): ParleyError {
  try {
    parseScript('script.yaml', yaml);
  } catch (error) {
    if (error instanceof ParleyError) return error;
    throw error;
  }
  throw new Error('expected a refusal');
}

describe('a script of the scripted model', () => {
  it('a script is read from its file', async () => {
    folder = await mkdtemp(join(tmpdir(), 'parley-script-'));
    const file = join(folder, 'script.yaml');
    await writeFile(file, 'rules: [{ reply: { text: Hi } }]');
    expect(await loadScript(file)).toMatchObject({ file, rules: [{ reply: { text: 'Hi', delayMs: 0 } }] });
  });

  it('a script that cannot be read is refused with its name and the setting that names it', async () => {
    await expect(loadScript('/no/such/script.yaml')).rejects.toMatchObject(
      errorWith('CONFIG_INVALID', '/no/such/script.yaml', 'models.<name>.script'),
    );
  });

  it.each([
    ['rules: [{ reply: { text: 5 } }]', 'rules[0].reply.text', '5', 'a text'],
    [
      'rules: [{ reply: { txet: hi } }]',
      'rules[0].reply.txet',
      'not known',
      'docs/guides/model-providers.md',
    ],
    ['rules: [{ reply: {} }]', 'rules[0].reply', '{}', 'a text, tool_calls, an error or a finishReason'],
    ['rules: [{ when: { n: -1 }, reply: { text: x } }]', 'rules[0].when.n', '-1', 'a number of at least 0'],
    [
      'rules: [{ when: { mode: fast }, reply: { text: x } }]',
      'rules[0].when.mode',
      '"fast"',
      'one of chat, agent, run',
    ],
    [
      'rules: [{ when: { last: "/(/" }, reply: { text: x } }]',
      'rules[0].when.last',
      '"/(/"',
      'regular expression',
    ],
    ['rules: [{ reply: { text: "{{lats}}" } }]', 'rules[0].reply', '{{lats}}', '{{last}}, {{agent}}'],
    [
      'rules: [{ when: { last: "/(a)/" }, reply: { text: "{{2}}" } }]',
      'rules[0].reply',
      '{{2}}',
      '{{0}}, {{1}}',
    ],
    ['rules: [{ when: { last: a }, reply: { text: "{{0}}" } }]', 'rules[0].reply', '{{0}}', '{{last}}'],
    ['rules: []', 'rules', '[]', 'a list of at least 1'],
    ['hello', 'script.yaml', '"hello"', 'an object'],
    ['', 'script.yaml', 'null', 'an object'],
    ['rules:\n  - reply: [', 'script.yaml:2:', 'Flow sequence', 'valid YAML'],
  ])('the script %j is refused with file, key, value and expectation', (yaml, key, seen, expected) => {
    const { code, message } = refusalOf(yaml);
    expect(code).toBe('CONFIG_INVALID');
    for (const part of ['script.yaml', key, seen, expected]) expect(message).toContain(part);
  });

  it('a script is refused with all its errors at once', () => {
    const { message } = refusalOf('rules: [{ reply: { text: 5 } }, { reply: { delayMs: soon, text: x } }]');
    expect(message).toContain('rules[0].reply.text');
    expect(message).toContain('rules[1].reply.delayMs');
  });
});

describe('the script that is shipped', () => {
  const told = [
    'hello',
    'plan a todo app',
    'fix the bug',
    'review it',
    'how long?',
    'what now?',
    'thanks',
    '…',
    'x',
    'y',
  ];

  it.each(['pm', 'planner', 'dev', 'reviewer', 'somebody'])(
    'the shipped script has an answer of %s to any message',
    async (agent) => {
      const answers = await replyTo(await loadScript(), told, agent);
      for (const answer of answers) {
        expect(answer).not.toBe('');
        expect(answer).not.toContain('{{');
      }
    },
  );

  it('the offline model answers by the shipped script, which it reads at its first call', async () => {
    const script = await loadScript();
    const request = requestOf([{ role: 'user', content: 'hello' }]);
    const { text } = await ask(script, request, createOfflineModel());
    expect(text).toBe((await ask(script, request)).text);
    expect(text).not.toBe('');
  });

  it('the shipped script answers a request for a plan in four voices, and refers to the plan by name', async () => {
    const script = await loadScript();
    const team = ['pm', 'planner', 'dev', 'reviewer'];
    const answers = await Promise.all(
      team.map((agent) => replyTo(script, ['@all plan a todo app, please'], agent)),
    );
    expect(new Set(answers.flat()).size).toBe(4);
    for (const answer of answers.flat()) expect(answer).toMatch(/a todo app\b(?!,? please)/);
  });

  it('the shipped script does not repeat itself at once', async () => {
    const answers = await replyTo(
      await loadScript(),
      ['hello', 'hello', 'plan a boat', 'plan a boat', 'a', 'b', 'c'],
      'pm',
    );
    expect(new Set(answers).size).toBe(answers.length);
  });
});
