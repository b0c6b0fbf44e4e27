import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/index.ts';
import { newFolder } from '../../support/lifetime.ts';

/** One problem for each cause: where, what, and what to do. */

const PARLEY = 'models:\n  fast: { provider: scripted }\ndefaultAgent: pm\n';
const PM = '---\nname: PM\nmodel: fast\ntools: [handoff]\n---\nYou lead.\n';
const SHIP =
  'id: ship\nstart: build\nnodes:\n  build: { agent: pm, brief: Build., tools: [handoff], outcomes: { built: end } }\n';
const FILES = { 'parley.yaml': PARLEY, 'agents/pm.md': PM, 'workflows/ship.yaml': SHIP };
type File = keyof typeof FILES;

const TAB = ['a tab in the indentation', 'replace the tab'] as const;
const TWICE = ['a duplicate key', 'keep one of them; the first one is in line 2'] as const;
const QUOTE = ['a quote that is not closed', 'close it, or leave both out'] as const;
const UNKNOWN = 'a known key (this one is unknown)';
const BRIEF = [UNKNOWN, 'did you mean nodes.build.brief?'] as const;
const COLUMN = [
  'a line that is not in the column of the keys beside it',
  'indent this line as the others of its level',
] as const;
const DEEPER = [
  'a value, and below it keys that are indented deeper',
  'indent the next line as this one',
] as const;

it.each([
  ['a tab', 'parley.yaml', PARLEY.replace('  fast', '\tfast'), '2:1', ...TAB],
  ['a tab', 'agents/pm.md', PM.replace('model', '\tmodel'), '3:1', ...TAB],
  ['a tab', 'workflows/ship.yaml', SHIP.replace('  build', '\tbuild'), '4:1', ...TAB],
  ['a key twice', 'parley.yaml', `${PARLEY}models: {}\n`, '4:1: models', 'a duplicate key', 'is in line 2'],
  ['a key twice', 'agents/pm.md', PM.replace('model', 'name: PM\nmodel'), '3:1: name', ...TWICE],
  ['a key twice', 'workflows/ship.yaml', `${SHIP}start: build\n`, '5:1: start', ...TWICE],
  ['a wrong indentation', 'parley.yaml', 'models:\n    fast: {}\n  slow: {}\n', '3:1', ...COLUMN],
  ['a key below a value', 'workflows/ship.yaml', SHIP.replace('start', ' start'), '1:5', ...DEEPER],
  ['an open quote', 'parley.yaml', PARLEY.replace(': pm', ': "pm'), '3:15', ...QUOTE],
  ['an open quote', 'agents/pm.md', PM.replace(': PM', ": 'PM"), '2:7', ...QUOTE],
  ['an open quote', 'workflows/ship.yaml', SHIP.replace(': ship', ': "ship'), '1:5', ...QUOTE],
  ['an unknown key', 'parley.yaml', `${PARLEY}retyr: {}\n`, '4:1: retyr', UNKNOWN, 'did you mean retry?'],
  [
    'an unknown key',
    'agents/pm.md',
    PM.replace('model', 'modle'),
    '3:1: modle',
    UNKNOWN,
    'did you mean model?',
  ],
  [
    'an unknown key',
    'workflows/ship.yaml',
    SHIP.replace('brief', 'breif'),
    '4:23: nodes.build.breif',
    ...BRIEF,
  ],
  ['a wrong type', 'parley.yaml', `${PARLEY}limits: { turnSeconds: soon }\n`, '4:24', '"soon"', 'a number'],
  ['a wrong type', 'agents/pm.md', PM.replace('[handoff]', 'handoff'), '4:8: tools', '"handoff"', 'a list'],
  [
    'a missing key',
    'workflows/ship.yaml',
    SHIP.replace('start: build\n', ''),
    '1:1: start',
    'a run begins',
    '',
  ],
  [
    'front matter without an end',
    'agents/pm.md',
    '---\nname: PM\n',
    '1:1',
    'never ends',
    'a second line of ---',
  ],
] as const)('%s in %s is one problem', async (_, file: File, text, where, what, todo) => {
  const directory = await newFolder({ ...FILES, [file]: text });
  const error = await loadConfig({ env: {}, configDirectory: directory }).catch((failure: Error) => failure);
  const message = error instanceof Error ? error.message : 'no error';
  expect(message).toContain('the configuration has 1 problem\n');
  expect(message).toContain(`${file}:${where}\n`.replace(/(:\d+:\d+)\n$/, '$1'));
  expect(message).toContain(what);
  expect(message).toContain(todo);
});

it('a notice names each file of the folders that is not read, except hidden files and README.md', async () => {
  const agents = {
    'agents/qa.txt': 'x',
    'agents/dev.json': '{}',
    'agents/README.md': '# x',
    'agents/.x': '',
  };
  const workflows = { 'workflows/talk.yml': SHIP, 'workflows/README.md': 'x' };
  const directory = await newFolder({ ...FILES, ...agents, ...workflows });
  const { notices } = await loadConfig({ env: {}, configDirectory: directory });
  expect(notices.filter((notice) => notice.includes('is not read'))).toEqual([
    expect.stringContaining('agents/dev.json is not read: rename it to dev.md, or move it elsewhere'),
    expect.stringContaining('agents/qa.txt is not read: rename it to qa.md, or move it elsewhere'),
    expect.stringContaining('workflows/talk.yml is not read: rename it to talk.yaml, or move it elsewhere'),
  ]);
});
