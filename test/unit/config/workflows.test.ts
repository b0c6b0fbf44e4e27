import { describe, expect, it } from 'vitest';
import { load, refusalOf } from './folder.ts';

const AGENTS = {
  'agents/dev.md': '---\ntools: [shell, fs_read, recall]\n---\nYou write code.\n',
  'agents/qa.md': '---\ntools: [shell]\n---\nYou test.\n',
};

const SOUND = `id: ship
start: build
nodes:
  build:
    agent: dev
    brief: Build it.
    tools: [fs_read]
    outcomes: { built: verify, dropped: end }
  verify:
    agent: qa
    brief: |
      Check it.
    outcomes: { passed: end, failed: build }
`;

/** Loads a valid workflow with one text replaced. */
function loadWith(
  written: string,
  instead: string,
  { path, text } = { path: 'workflows/ship.yaml', text: SOUND },
) {
  if (!text.includes(written)) throw new Error(`the workflow has no ${written}`);
  return load({ ...AGENTS, [path]: text.replace(written, instead) });
}

describe('a workflow file', () => {
  it('a workflow is read from the file of its name', async () => {
    const { workflows } = await load({ ...AGENTS, 'workflows/ship.yaml': SOUND });
    expect(workflows).toEqual([
      {
        id: 'ship',
        start: 'build',
        nodes: {
          build: {
            agent: 'dev',
            brief: 'Build it.',
            tools: ['fs_read'],
            outcomes: { built: 'verify', dropped: 'end' },
          },
          verify: { agent: 'qa', brief: 'Check it.', outcomes: { passed: 'end', failed: 'build' } },
        },
      },
    ]);
    expect(Object.isFrozen(workflows[0]?.nodes.build?.outcomes)).toBe(true);
  });

  it('workflows are sorted by name', async () => {
    const files = {
      'workflows/b.yaml': SOUND.replace('ship', 'b'),
      'workflows/a.yaml': SOUND.replace('ship', 'a'),
    };
    expect((await load({ ...AGENTS, ...files })).workflows.map(({ id }) => id)).toEqual(['a', 'b']);
  });

  const TYPED = `id: score
start: build
answers: { type: object, properties: { url: { type: string } } }
nodes:
  build:
    agent: dev
    brief: Build it.
    answers: { type: object, properties: { files: { type: array, items: { type: string } }, score: { type: number } } }
    next:
      - { when: { path: score, below: 8 }, to: build }
    outcomes: { built: verify }
  verify:
    agent: qa
    brief: Check {{nodes.build.value.files.0}} of {{ nodes.build.value }}.
    outcomes: { passed: end }
`;
  const VALUE = 'nodes.build.value';
  const FILES = 'answers: { type: object, properties: { files';
  const NO_VALUE = ['nodes.verify.next[0]', 'gives no value'] as const;
  const typed = (written: string, instead: string) =>
    loadWith(written, instead, { path: 'workflows/score.yaml', text: TYPED });

  it('the nodes of a workflow can give values, branch on them, and pass them on', async () => {
    const { workflows } = await typed('', '');
    expect(workflows[0]).toMatchObject({
      answers: { type: 'object' },
      nodes: { build: { answers: {}, next: [{ when: { path: 'score', below: 8 }, to: 'build' }] } },
    });
  });

  it.each([
    ['nodes.build.value.files', 'nodes.bild.value.files', 'nodes.verify.brief', '"build"'],
    [`${VALUE}.files.0`, `${VALUE}.lines`, 'nodes.verify.brief', 'there is no lines, but files, score'],
    ['nodes.build.value.files.0', 'nodes.build.value.score.x', 'nodes.verify.brief', 'type number has no x'],
    ['nodes.build.value.files', 'nodes.verify.value', 'nodes.verify.brief', 'a node with `answers`: build'],
    ['nodes.build.value.files.0', 'nodes.build.files', 'nodes.verify.brief', '{{nodes.NAME.value.PATH}}'],
    ['path: score', 'path: points', 'nodes.build.next[0].when.path', 'there is no points'],
    ['below: 8 }, to: build', 'below: 8 }, to: bild', 'nodes.build.next[0].to', 'a node'],
    ['below: 8 }', '}', 'nodes.build.next[0].when', 'one of equals, above and below'],
    [
      'outcomes: { passed',
      'next: [{ when: { path: a, equals: 1 }, to: build }]\n    outcomes: { passed',
      ...NO_VALUE,
    ],
    [
      'answers: { type: object, properties: { url',
      'answers: { type: objects, properties: { url',
      'answers',
      'a JSON Schema',
    ],
    [FILES, 'answers: { $ref: "http://x/y", properties: { files', 'nodes.build.answers', 'a JSON Schema'],
  ])('a workflow with %j as %j is refused with its place', async (written, instead, key, what) => {
    const refusal = await refusalOf(typed(written, instead));
    expect(refusal).toContain(`score.yaml:`);
    expect(refusal).toContain(key);
    expect(refusal).toContain(what);
  });

  it.each([
    ['{ type: object, properties: 3 }', 'schema/properties must be object, got 3'],
    ['{ type: objekt }', 'schema/type must be equal to one of the allowed values'],
    ['{ pattern: "(a)\\\\1" }', 'the pattern "(a)\\\\1": '],
    ['{ pattern: "a(?=b)" }', 'write it without lookahead, backreferences and large repeats'],
    ['{ allOf: [{ $ref: "#" }] }', 'refers to itself without an end'],
  ])(
    'the schema %s of a node is refused with what is wrong in it, and what is expected',
    async (schema, seen) => {
      const text = await refusalOf(loadWith('brief: ', `answers: ${schema}\n    brief: `));
      expect(text).toContain('has 1 problem\n');
      expect(text).toContain('nodes.build.answers\n    seen:     the schema ');
      expect(text).toContain(seen);
      expect(text).toContain('expected: a JSON Schema, such as { type: object, properties: ');
    },
  );

  it('a workflow can contain loops if some outcome leads out', async () => {
    const nodes =
      'a: { agent: dev, brief: x, outcomes: { again: a, on: b } }\n  b: { agent: dev, brief: x, outcomes: { back: a, done: end } }';
    const files = { 'workflows/loop.yaml': `id: loop\nstart: a\nnodes:\n  ${nodes}\n` };
    expect((await load({ ...AGENTS, ...files })).workflows).toHaveLength(1);
  });

  it('a node can have no tools, or list complete_node, which every node has', async () => {
    const without = await loadWith('tools: [fs_read]', 'tools: []');
    expect(without.workflows[0]?.nodes.build?.tools).toEqual([]);
    const named = await loadWith('tools: [fs_read]', 'tools: [complete_node, fs_read]');
    expect(named.workflows[0]?.nodes.build?.tools).toEqual(['complete_node', 'fs_read']);
  });

  it('a node can use the tools of a server that its agent lists', async () => {
    const { workflows } = await load({
      'parley.yaml': 'tools: { mcpServers: { files: { command: npx } } }',
      'agents/dev.md': '---\ntools: [mcp__files__read]\n---\n',
      'workflows/w.yaml':
        'id: w\nstart: a\nnodes: { a: { agent: dev, brief: x, tools: [mcp__files__read], outcomes: { done: end } } }',
    });
    expect(workflows[0]?.nodes.a?.tools).toEqual(['mcp__files__read']);
  });

  it('a dollar sign with a name in braces is not replaced in a workflow', async () => {
    const reference = '$' + '{HOME}';
    const { workflows } = await loadWith('Build it.', `Use ${reference}.`);
    expect(workflows[0]?.nodes.build?.brief).toBe(`Use ${reference}.`);
  });

  it('a workflow in a .yml file, which is not read, gets a notice', async () => {
    const { notices, workflows } = await load({ ...AGENTS, 'workflows/ship.yml': SOUND });
    expect(workflows).toEqual([]);
    expect(notices.join()).toMatch(/workflows\/ship\.yml is not read: rename it to ship\.yaml/);
  });
});

const UNKNOWN = 'a known key (this one is unknown)';
const NODES = 'one of build, verify';
const FAILED = 'failed: build';
const TOOLS = 'tools: [fs_read]';
const VERIFY = 'nodes.verify.outcomes';
const MISSPELT = 'a tool that is offered: there is no tool fs_raed; did you mean fs_read?';
const NOT_OFFERED = 'a tool that is offered: no server of tools.mcpServers offers';
const OF_DEV = 'a tool that dev has: one of shell, fs_read, recall';
const NAME_IT = 'hint:     name it in an outcome of build, or remove it';
const NO_WAY = 'a path from verify to end';

describe('a refused workflow', () => {
  /** The text, its replacement, and the problem: its place, what is seen, what is expected, and a hint. */
  const WRONG: [string, string, string, string, string, string?][] = [
    ['id: ship', 'id: shop', '1:5: id', '"shop"', 'ship, as the file is named'],
    ['id: ship', 'id: 7', '1:5: id', '7', 'a text'],
    ['start: build', 'start: biuld', '2:8: start', '"biuld"', `a node: ${NODES}\n`, 'did you mean "build"?'],
    ['start: build', 'start: end', '2:8: start', '"end"', `a node: ${NODES}`],
    ['start: build', 'steps: 2', '2:1: steps', '2', UNKNOWN],
    ['agent: qa', 'agent: qq', '10:12: nodes.verify.agent', '"qq"', 'an agent: one of dev, qa'],
    [
      FAILED,
      'failed: buidl',
      `13:38: ${VERIFY}.failed`,
      '"buidl"',
      `a node: ${NODES}, end`,
      'did you mean "build"?',
    ],
    [FAILED, 'failed: [build]', `13:38: ${VERIFY}.failed`, 'a list', 'a list of at least 2'],
    [FAILED, '"it failed": build', `13:43: ${VERIFY}["it failed"]`, '"build"', 'a name: letters'],
    [`{ passed: end, ${FAILED} }`, '{}', `13:15: ${VERIFY}`, 'no outcomes', 'at least one outcome'],
    ['brief: Build it.', 'brief: "  "', '6:12: nodes.build.brief', '"  "', 'a text that is not empty'],
    ['brief: Build it.', 'brief:', '6:11: nodes.build.brief', 'null', 'a text'],
    [TOOLS, 'tools: fs_read', '7:12: nodes.build.tools', '"fs_read"', 'a list'],
    [TOOLS, 'tools: [recall, fs_raed]', '7:21: nodes.build.tools[1]', '"fs_raed"', MISSPELT],
    [TOOLS, 'tools: [mcp__web__get]', '7:13: nodes.build.tools[0]', '"mcp__web__get"', NOT_OFFERED],
    [TOOLS, 'tools: [ask]', '7:13: nodes.build.tools[0]', '"ask"', OF_DEV, 'add it to the tools of '],
    [TOOLS, 'tool: [fs_read]', '7:5: nodes.build.tool', 'a list', UNKNOWN, 'did you mean nodes.build.tools?'],
    ['brief: Build it.', 'agent: qa', '6:5: nodes.build.agent', 'a duplicate key', 'each key once'],
    ['  verify:', '  build:', '9:3: nodes.build', 'a duplicate key', ''],
    ['  verify:', '  end:', '10:5: nodes.end', 'a node named "end"', 'another name'],
    [
      'built: verify',
      'built: end',
      '10:5: nodes.verify',
      'an unreachable node',
      'a path from build to it',
      NAME_IT,
    ],
    [`passed: end, ${FAILED}`, 'passed: verify', `13:15: ${VERIFY}`, 'outcomes that lead to verify', NO_WAY],
  ];

  it.each<(typeof WRONG)[number]>(WRONG)(
    'a workflow with %j replaced by %j is refused at %s',
    async (written, instead, place, seen, expected, hint = '') => {
      const text = await refusalOf(loadWith(written, instead));
      const lines = [`- workflows/ship.yaml:${place}`, `seen:     ${seen}`, `expected: ${expected}`];
      expect(text).toContain(lines.join('\n    '));
      expect(text).toContain(hint);
      if (!/^(steps|tool| {2}end| {2}build)/.test(instead)) expect(text).toContain('has 1 problem\n');
    },
  );

  it.each([
    ['', ['id', 'nodes', 'start']],
    ['id: w\nstart: a\nnodes: {}\n', ['nodes']],
    ['id: w\nstart: a\nnodes: { a: {} }\n', ['nodes.a.agent', 'nodes.a.brief', 'nodes.a.outcomes']],
    ['id: w\nstart: a\nnodes: { a: build, b: { agent: dev, brief: x, outcomes: { on: a } } }\n', ['nodes.a']],
    ['id: w\nstart: a\nnodes: []\n', ['nodes']],
    ['start: a\nnodes: { a: { agent: dev, brief: x, outcomes: { done: end } } }\n', ['id']],
  ])('every missing key in %j is reported', async (yaml, keys) => {
    const text = await refusalOf(load({ ...AGENTS, 'workflows/w.yaml': yaml }));
    expect([...text.matchAll(/^- workflows\/w\.yaml\S*: (\S+)$/gm)].map((match) => match[1])).toEqual(keys);
  });

  const SIDE = {
    path: 'workflows/side.yaml',
    text: `id: side
start: plan
nodes:
  plan: { agent: qa, brief: x, outcomes: { planned: [build, test] } }
  build: { agent: dev, brief: x, answers: { type: object }, outcomes: { built: meet, dropped: end } }
  test: { agent: qa, brief: x, outcomes: { tested: meet } }
  meet: { agent: dev, brief: x, after: [build, test], outcomes: { met: end, again: plan } }
`,
  };
  const loadSide = (written: string, instead: string) => loadWith(written, instead, SIDE);

  it('nodes that run side by side and meet are read', async () => {
    const [side] = (await loadSide('id', 'id')).workflows;
    expect(side?.nodes.plan?.outcomes).toEqual({ planned: ['build', 'test'] });
    expect(side?.nodes.meet?.after).toEqual(['build', 'test']);
  });

  it.each([
    [', after: [build, test]', '', 'plan.outcomes.planned', 'at which they meet'],
    ['after: [build, test]', 'after: [build, plan]', 'plan.outcomes.planned', '`after: [build, test]`'],
    ['[build, test] }', 'build, or: test }', 'meet.after', 'an outcome that leads to [build, test]'],
    ['test: { agent: qa', 'test: { agent: dev', 'test.agent', 'an agent of its own'],
    ['tested: meet', 'tested: build', 'build', 'a node of one branch only'],
    ['tested: meet', 'tested: meet, no: plan', 'test.outcomes.no', 'where it meets the others'],
    ['built: meet, ', '', 'build.outcomes', 'an outcome that leads to meet'],
    ['again: plan', 'again: build', 'meet.outcomes.again', 'belongs to the branch build'],
    ['id: side\nstart: plan', 'id: side\nstart: build', '', 'a node before the one that leads to several'],
    ['[build, test] }', '[build, test], no: meet }', 'plan.outcomes.no', 'entered by its branches alone'],
    [
      'x, outcomes: { tested',
      "'{{nodes.build.value}}', outcomes: { tested",
      'test.brief',
      'runs side by side',
    ],
    ['[build, test] }', '[build, end] }', 'plan.outcomes.planned', 'nodes side by side, or end alone'],
    ['[build, test] }', '[build, build] }', 'plan.outcomes.planned', 'each node once'],
    ['[build, test] }', '[build, tes] }', 'plan.outcomes.planned', 'did you mean "test"?'],
    ['after: [build, test]', 'after: [build, tes]', 'meet.after', 'did you mean "test"?'],
  ])('branches with %j replaced by %j are refused at %s', async (written, instead, key, why) => {
    const text = await refusalOf(loadSide(written, instead));
    expect(text).toContain(key === '' ? ': start\n' : `nodes.${key}`);
    expect(text).toContain(why);
  });

  it.each(['', ', after: [x, y]'])(
    'a fork on a branch%s is refused alone, with what to do',
    async (after) => {
      const more = ['x', 'y']
        .map((name) => `  ${name}: { agent: qa, brief: x, outcomes: { on: z } }\n`)
        .join('');
      const nested = `tested: [x, y] } }\n${more}  z: { agent: qa, brief: x, outcomes: { on: meet }${after} }`;
      const text = await refusalOf(loadSide('tested: meet } }', nested));
      expect(text).toContain('has 1 problem\n');
      expect(text).toContain('nodes.test.outcomes.tested\n    seen:     [x, y]\n');
      expect(text).toContain('test is on a branch of [build, test], and a branch forks no further');
    },
  );

  it('a workflow whose end is unreachable is reported once', async () => {
    const text = await refusalOf(
      load({ ...AGENTS, 'workflows/ship.yaml': SOUND.replaceAll(/(dropped|passed): end/g, '$1: build') }),
    );
    expect(text).toContain('has 1 problem\n');
    expect(text).toMatch(/ship\.yaml:\d+:3: nodes\n {4}seen: {5}no path from build to end\n/);
  });

  it('every mistake in all workflows is reported at once', async () => {
    const text = await refusalOf(
      load({
        ...AGENTS,
        'workflows/ship.yaml': SOUND.replace('id: ship', 'id: shop')
          .replace('agent: dev', 'agent: devi')
          .replace('passed: end', 'passed: build')
          .replace('dropped: end', 'dropped: build'),
        'workflows/torn.yaml': 'id: [',
        'workflows/Ship It.yaml': SOUND,
      }),
    );
    expect(text).toContain('- workflows/Ship It.yaml\n    seen:     a file named "Ship It"');
    expect(text).toMatch(/- workflows\/torn\.yaml:1:\d+\n/);
    for (const key of ['id', 'nodes.build.agent', 'nodes']) expect(text).toContain(`: ${key}\n`);
  });

  it('problems of an agent are not reported for a workflow that uses it', async () => {
    const noTools = { 'agents/dev.md': '---\ntools: shell\n---\n', 'agents/qa.md': AGENTS['agents/qa.md'] };
    const wrong = await refusalOf(load({ ...noTools, 'workflows/ship.yaml': SOUND }));
    expect(wrong).toContain('has 1 problem\n- agents/dev.md:2:8: tools\n');
    const torn = { ...noTools, 'agents/dev.md': '---\ntools: [shell\n---\n' };
    expect(await refusalOf(load({ ...torn, 'workflows/ship.yaml': SOUND }))).not.toContain('ship.yaml');
    const nobody = await refusalOf(load({ 'agents/readme.txt': '', 'workflows/ship.yaml': SOUND }));
    expect(nobody).toContain('at least one agent');
    expect(nobody).not.toContain('ship.yaml');
  });

  it.each(['__proto__', 'constructor'])(
    'a reference to %s is refused if there is no such node',
    async (name) => {
      expect(await refusalOf(loadWith('built: verify', `built: ${name}, on: verify`))).toContain(
        'has 1 problem\n',
      );
      expect(await refusalOf(loadWith('start: build', `start: ${name}`))).toContain(': start\n');
    },
  );
});
