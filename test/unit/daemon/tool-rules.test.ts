import { expect, it } from 'vitest';
import type { Toolbox } from '../../../src/agents/index.ts';
import type { Config } from '../../../src/config/index.ts';
import { toolRules } from '../../../src/daemon/tools/tool-rules.ts';

const tool = (name: string, risk: 'safe' | 'risky') =>
  [name, { name, risk, description: name, parameters: {} }] as const;
const toolbox: Toolbox = {
  definitions: () => new Map([tool('fs_read', 'safe'), tool('shell', 'risky'), tool('constructor', 'safe')]),
  check: (_, given) => (Object.hasOwn(given as object, 'wrong') ? 'wrong is unknown' : null),
  run: async () => ({ kind: 'aborted' }),
  close: async () => undefined,
};
const POLICY = [
  { agent: 'dev', tool: 'shell', match: { command: '^rm ' }, allow: false },
  { agent: 'dev', tool: 'shell', match: { command: '^(ls|rm)' }, allow: true },
];

it.each<[string, string, string, object, object]>([
  ['pm', 'fs_read', '{}', {}, { kind: 'run', risk: 'safe' }],
  ['pm', 'fs_read', '', {}, { kind: 'run', risk: 'safe' }],
  ['pm', 'constructor', '{}', {}, { kind: 'run', risk: 'safe' }],
  ['pm', 'fs_read', '{}', { fs_read: 'risky' }, { kind: 'ask' }],
  ['pm', 'shell', '{}', { shell: 'safe' }, { kind: 'run', risk: 'safe' }],
  ['pm', 'shell', '{"command":"ls"}', {}, { kind: 'ask' }],
  ['dev', 'shell', '{"command":"ls"}', {}, { kind: 'run', risk: 'risky' }],
  ['dev', 'shell', '{"command":"rm x"}', {}, { kind: 'refuse', code: 'FORBIDDEN' }],
  ['dev', 'shell', '{"command":["ls"]}', {}, { kind: 'ask' }],
  ['pm', 'fs_read', '{"wrong":1}', {}, { kind: 'refuse', code: 'INVALID_ARGUMENTS' }],
  ['pm', 'fs_read', '{', {}, { kind: 'refuse', code: 'INVALID_ARGUMENTS' }],
  ['pm', 'fs_read', '[]', {}, { kind: 'refuse', code: 'INVALID_ARGUMENTS' }],
  [
    'pm',
    'fs_read',
    '{"arguments_too_large":"[Full output: …]"}',
    {},
    { kind: 'refuse', code: 'ARGUMENTS_TOO_LARGE' },
  ],
  ['pm', 'dance', '{}', {}, { kind: 'refuse', code: 'TOOL_NOT_AVAILABLE' }],
])('%s calling %s with %s, risks %j: %j', (agent, name, text, risk, expected) => {
  const config = { tools: { risk, policy: POLICY } } as unknown as Config;
  const available = ['fs_read', 'shell', 'constructor', 'dance'];
  const rules = toolRules(config, toolbox);
  expect(rules.judge({ agent, name, arguments: text, available })).toMatchObject(expected);
  expect(rules.judge({ agent, name, arguments: text, available: [] })).toMatchObject({
    kind: 'refuse',
    code: 'TOOL_NOT_AVAILABLE',
  });
});

it.each<[string, string, object]>([
  ['fs_read', '{}', { kind: 'ask', accepts: 'd1' }],
  ['shell', '{"command":"ls"}', { kind: 'ask', accepts: 'd1' }],
  ['shell', '{"command":"rm x"}', { kind: 'refuse', code: 'FORBIDDEN' }],
])(
  'a changed tool needs an approval even if a rule allows it, and stays forbidden if a rule forbids it: %s %s',
  (name, text, expected) => {
    const config = {
      tools: { risk: { fs_read: 'safe', shell: 'safe' }, policy: POLICY },
    } as unknown as Config;
    const unaccepted = { digest: 'd1', is: 'changed' } as const;
    const changed = new Map([...toolbox.definitions()].map(([key, one]) => [key, { ...one, unaccepted }]));
    const rules = toolRules(config, { ...toolbox, definitions: () => changed });
    const request = { agent: 'dev', name, arguments: text, available: ['fs_read', 'shell'] };
    expect(rules.judge(request)).toMatchObject(expected);
  },
);
