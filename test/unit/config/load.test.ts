import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/index.ts';
import { newFolder } from '../../support/lifetime.ts';
import { AGENT, load, loadYaml, refusalOf } from './folder.ts';

describe('loading a configuration folder', () => {
  it('one agent is enough: every key has a default', async () => {
    const config = await load({});
    expect(config).toMatchObject({
      defaultAgent: 'dev',
      subjectPrefix: 'parley',
      context: {
        contextMaxMessages: null,
        contextMaxChars: null,
        includeToolResultsInContext: true,
        includeCollapsedUiEventsInContext: false,
      },
      limits: {
        hopsPerTrigger: 16,
        modelCallsPerTurn: 50,
        turnSeconds: 900,
        tokensPerConversation: null,
        usdPerConversation: null,
      },
      retry: { attempts: 4, baseMs: 500, maxMs: 30_000 },
      tools: { mcpServers: {}, risk: {}, policy: [], project: config.directory, environment: {} },
      approvals: { approvers: ['*'], ownRequests: true, expireAfterMs: null },
      shutdown: { graceMs: 10_000 },
      remoteAgents: { silenceMs: 30_000, heartbeatMs: 5_000 },
      telemetry: 'off',
      workflows: [],
    });
    expect(Object.keys(config.phases)).toContain('verification');
  });

  it.each(['parley.yaml', 'agents/pm.md', 'workflows/w.yaml'])(
    'the file %s is refused if it is not UTF-8',
    async (path) => {
      const text = Buffer.from([0x63, 0x61, 0x66, 0xe9]);
      const refused = load({ ...AGENT, [path]: text });
      await expect(refused).rejects.toThrow(/not UTF-8/);
      await expect(refused).rejects.toThrow(path);
    },
  );

  it('only the operator may approve by default on a server that is not managed', async () => {
    const load = (text: string) => loadYaml(`nats: { server: "nats://127.0.0.1:4222" }\n${text}`);
    expect((await load('')).approvals).toMatchObject({ approvers: [], ownRequests: false });
    const { approvals } = await load('approvals: { approvers: [alice], ownRequests: true }');
    expect(approvals).toMatchObject({ approvers: ['alice'], ownRequests: true });
  });

  it('a missing folder is refused with its path and a hint how to name another', async () => {
    const folder = await newFolder({});
    const error = loadConfig({ configDirectory: 'nowhere', env: {}, workingDirectory: folder });
    await expect(error).rejects.toThrow(`${folder}/nowhere`);
    await expect(error).rejects.toThrow('--config');
  });

  it('a file in the place of the folder is refused', async () => {
    const folder = await newFolder({ config: 'text' });
    const loading = loadConfig({ configDirectory: 'config', env: {}, workingDirectory: folder });
    expect(await refusalOf(loading)).toContain('seen:     a file');
  });

  it('PARLEY_CONFIG can name the folder', async () => {
    const folder = await newFolder({ 'team/agents/qa.md': 'You test.' });
    const config = await loadConfig({ env: { PARLEY_CONFIG: 'team' }, workingDirectory: folder });
    expect(config.directory).toBe(`${folder}/team`);
  });

  it('a folder without agents is refused', async () => {
    expect(await refusalOf(load({ 'agents/readme.txt': '' }))).toContain('at least one agent');
  });

  it('a file with another ending is named beside the problems that it causes', async () => {
    const files = { 'agents/dev.md': 'hi', 'agents/lead.markdown': 'x', 'parley.yaml': 'defaultAgent: lead' };
    const refused = await refusalOf(load(files));
    expect(refused).toContain('defaultAgent');
    expect(refused).toMatch(/lead\.markdown is not read: rename it to lead\.md/);
    expect(refused.match(/lead\.markdown/g)).toHaveLength(1);
  });

  it('an agent in a file with another ending is refused with the name that its file needs, not with the folder', async () => {
    const refused = await refusalOf(load({ 'agents/lead.markdown': 'You lead.' }));
    expect(refused).toMatch(/lead\.markdown is not read: rename it to lead\.md/);
    expect(refused).toContain('rename the file to <slug>.md');
    expect(refused).not.toContain('--config');
  });

  it('the loaded configuration is frozen', async () => {
    const { agents, limits } = await load({});
    expect(() => Object.assign(limits, { turnSeconds: 1 })).toThrow(TypeError);
    expect(() => Object.assign(agents, { 0: null })).toThrow(TypeError);
  });

  it('a parley.yml, which is not read, gets a notice', async () => {
    const { notices } = await load({ 'parley.yml': 'defaultAgent: dev' });
    expect(notices.join()).toMatch(/parley\.yml is not read: rename it to parley\.yaml/);
  });
});

describe('problems of a configuration', () => {
  it('all problems are reported at once, each with file, line, key, value seen and value expected', async () => {
    const text = await refusalOf(
      load({
        'parley.yaml':
          'defaultAgent: nobody\nlimits:\n  turnSeconds: soon\n  hopsPerTrigger: -1\nmodls: {}\n',
        'agents/dev.md': '---\nphases: [exekute]\n---\nHi',
        'agents/Bad Name.md': 'Hi',
      }),
    );
    const problem = (place: string, seen: string, expected: string) =>
      `- ${place}\n    seen:     ${seen}\n    expected: ${expected}`;
    expect(text).toContain('has 6 problems');
    expect(text).toContain(problem('parley.yaml:3:16: limits.turnSeconds', '"soon"', 'a number'));
    expect(text).toContain(
      problem('parley.yaml:4:19: limits.hopsPerTrigger', '-1', 'a number of at least 0'),
    );
    expect(text).toContain('- parley.yaml:5:1: modls');
    expect(text).toContain('did you mean models?');
    expect(text).toContain('- agents/Bad Name.md\n    seen:     a file named "Bad Name"');
    expect(text).toContain(problem('agents/dev.md:2:10: phases[0]', '"exekute"', 'a phase: one of chat,'));
    expect(text).toContain('did you mean "execute"?');
    expect(text).toContain(problem('parley.yaml:1:15: defaultAgent', '"nobody"', 'an agent: one of dev'));
  });

  it('a YAML error is reported with line and column', async () => {
    const text = await refusalOf(loadYaml('limits:\n  turnSeconds: [1\nretry: {}\n'));
    expect(text).toMatch(/- parley\.yaml:3:1\n/);
    expect(text).toContain('valid YAML');
  });

  it('a key that occurs twice is reported', async () => {
    const text = await refusalOf(
      loadYaml('retry: {}\ntools:\n  policy:\n    - tool: shell\n      tool: ask\nretry: {}\n'),
    );
    expect(text).toContain('parley.yaml:5:7: tools.policy[0].tool\n    seen:     a duplicate key');
    expect(text).toContain('parley.yaml:6:1: retry\n    seen:     a duplicate key');
  });

  it.each([
    ['a text', 'just words'],
    ['a list', '- one'],
  ])('a file that is %s is reported', async (_, yaml) => {
    expect(await refusalOf(loadYaml(yaml))).toContain('expected: a mapping');
  });

  it('an unreadable file is reported', async () => {
    expect(await refusalOf(load({ 'parley.yaml/file': '' }))).toContain('a readable file');
    expect(await refusalOf(load({ 'agents/dev.md/file': '' }))).toContain('at least one agent');
    expect(await refusalOf(load({ agents: 'a file' }))).toContain('a readable folder');
  });

  it('a key in the wrong section gets a hint with the right section', async () => {
    expect(await refusalOf(loadYaml('turnSeconds: 5'))).toContain('did you mean "limits.turnSeconds"?');
  });

  it('an unknown key without a similar one gets a list of known keys', async () => {
    expect(await refusalOf(loadYaml('shutdown: { patience: 1 }'))).toContain('known here: graceMs');
  });

  const LONG = 'a'.repeat(49);
  const STEPS =
    'it has 2002 steps with its repeats, and at most 300 are matched: use smaller repeats, or * and +';
  const ruled = (allow: string, command: string) =>
    `tools: { policy: [ { tool: shell, allow: ${allow}, match: { command: "${command}" } } ] }`;

  it.each([
    ['retry: { baseMs: 100, maxMs: 10 }', 'retry.maxMs', 'at least baseMs'],
    ['retry: { attempts: 1.5 }', 'retry.attempts', 'a whole number'],
    ['retry: 4', 'retry', 'a mapping'],
    ['approvals: { approvers: alice }', 'approvals.approvers', 'a list'],
    ['approvals: { approvers: ["a b"] }', 'approvals.approvers[0]', 'a publisher name, or *'],
    ['approvals: { expireAfterMs: 0 }', 'approvals.expireAfterMs', 'a number of at least 1'],
    ['approvals: { expireAfterMs: 3000000000 }', 'approvals.expireAfterMs', 'a number of at most 2147483647'],
    ['approvals: { expireAfterMs: soon }', 'approvals.expireAfterMs', 'a number'],
    ['subjectPrefix: "a.>"', 'subjectPrefix', 'dots between tokens'],
    ['defaultAgent: "Dev!"', 'defaultAgent', 'an agent slug'],
    ['tools: { risk: { shell: maybe } }', 'tools.risk.shell', 'one of safe, risky'],
    ['tools: { project: nowhere }', 'tools.project', 'a folder that exists'],
    ['tools: { mcpServers: { a: {} } }', 'tools.mcpServers.a', 'either command or url'],
    [
      'tools: { mcpServers: { a: { command: x, url: "http://x" } } }',
      'tools.mcpServers.a',
      'either command or url',
    ],
    [
      'tools: { mcpServers: { a: { command: x, headers: {} } } }',
      'tools.mcpServers.a',
      'headers only with url',
    ],
    [
      'tools: { mcpServers: { a: { url: "http://x", args: [] } } }',
      'tools.mcpServers.a',
      'only with command',
    ],
    ['tools: { mcpServers: { a__b: { command: x } } }', 'tools.mcpServers.a__b', 'a server name'],
    [`tools: { mcpServers: { ${LONG}: { command: x } } }`, `tools.mcpServers.${LONG}`, 'at most 48'],
    ['tools: { policy: [ { tool: shell } ] }', 'tools.policy[0].allow', 'true or false'],
    [ruled('true', '('), 'tools.policy[0].match.command', 'a regular expression'],
    [
      ruled('true', '^(?!rm).*$'),
      'tools.policy[0].match.command',
      'without lookahead, backreferences and repeats above 1000',
    ],
    [
      ruled('false', '(.*){500}'),
      'tools.policy[0].match.command',
      `a regular expression that is smaller (${STEPS})`,
    ],
    [
      'tools: { policy: [ { tool: handoff, allow: false } ] }',
      'tools.policy[0].tool',
      'a tool that acts on the world',
    ],
    ['tools: { risk: { delegate: risky } }', 'tools.risk.delegate', 'a tool that acts on the world'],
    ['phases: { review: { next: [nowhere] } }', 'phases.review.next[0]', 'a phase: one of chat,'],
    ['phases: { Review: {} }', 'phases.Review', 'a phase name'],
    ['context: { contextMaxChars: 0 }', 'context.contextMaxChars', 'a number of at least 1'],
    ['agents: { silenceMs: 100, heartbeatMs: 100 }', 'agents.heartbeatMs', 'less than silenceMs'],
    ['agents: { silenceMs: 3000000000 }', 'agents.silenceMs', 'a number of at most 2147483647'],
    ['agents: { patience: 5 }', 'agents.patience', 'known here: silenceMs, heartbeatMs'],
    ['shutdown: { graceMs: -1 }', 'shutdown.graceMs', 'a number of at least 0'],
  ])('a problem in %s is reported at its key', async (yaml, key, expected) => {
    const text = await refusalOf(loadYaml(yaml));
    expect(text).toContain('has 1 problem\n');
    expect(text).toContain(`: ${key}\n`);
    expect(text).toContain(expected);
  });

  it('a problem in one key does not cause problems in others', async () => {
    const text = await refusalOf(
      load({
        'parley.yaml':
          'models:\n  fast: { provider: scripted, contextTokens: many, price: { inputPerMillion: x, outputPerMillion: 1 } }\n',
        'agents/dev.md': '---\nmodel: fast\n---\n',
      }),
    );
    expect(text).toContain('has 2 problems');
    expect(text).toContain('models.fast.contextTokens\n    seen:     "many"');
    expect(text).toContain('models.fast.price.inputPerMillion');
  });
});

describe('phases', () => {
  it('configured phases are added to the built-in ones or replace them', async () => {
    const { phases } = await loadYaml(
      'phases:\n  review: { description: look again, next: [execute, chat] }\n  execute: { next: [review] }\n  plan: { description: think }\n',
    );
    expect(phases.review).toEqual({ description: 'look again', next: ['execute', 'chat'] });
    expect(phases.execute).toEqual({ description: 'do the work', next: ['review'] });
    expect(phases.plan).toEqual({ description: 'think', next: ['execute'] });
    expect(phases.chat?.next).toEqual(['execute', 'plan', 'brainstorm']);
  });

  it('an agent can be limited to a new phase', async () => {
    const config = await load({
      'parley.yaml': 'phases: { review: {} }',
      'agents/qa.md': '---\nphases: [review]\n---\n',
    });
    expect(config.agents[0]?.phases).toEqual(['review']);
  });
});

describe('prompts and workflows', () => {
  it('prompts and workflows come from the folder, and missing prompts from the shipped folder', async () => {
    const { prompts, workflows } = await load({
      'prompts/chat.md': 'Be brief.\r\n',
      'workflows/tidy.yaml':
        'id: tidy\nstart: sweep\nnodes: { sweep: { agent: dev, brief: Sweep., outcomes: { swept: end } } }\n',
    });
    expect(prompts.baseChat).toBe('Be brief.');
    expect(prompts.baseRun).toContain('complete_node');
    expect(prompts.toolPolicy).toContain('@project/');
    expect(workflows).toMatchObject([{ id: 'tidy', start: 'sweep' }]);
  });

  it('a prompt or workflow with a wrong file name gets a notice', async () => {
    const { notices } = await load({ 'prompts/chats.md': 'Be brief.' });
    expect(notices.join()).toContain('chats.md is not read: the prompts are chat.md, run.md, tools.md');
  });

  it('a workflow that is not YAML is refused', async () => {
    expect(await refusalOf(load({ 'workflows/a.yaml': 'a: [' }))).toMatch(/workflows\/a\.yaml:1:\d/);
  });
});

describe('tools', () => {
  it('MCP servers are resolved by their transport, and their secrets are hidden', async () => {
    const { tools } = await loadYaml(
      'tools:\n  mcpServers:\n    files: { command: npx, args: [it], env: { KEY: secret-one } }\n' +
        '    web: { url: "http://127.0.0.1:1/mcp", headers: { Authorization: "Bearer $' +
        '{TOKEN}" } }\n',
      { env: { TOKEN: 'secret-two' } },
    );
    expect(tools.mcpServers).toMatchObject({
      files: { transport: 'command', command: 'npx', args: ['it'] },
      web: { transport: 'http', url: 'http://127.0.0.1:1/mcp' },
    });
    const { web } = tools.mcpServers;
    expect(web?.transport === 'http' && web.headers.Authorization?.reveal()).toBe('Bearer secret-two');
    expect(JSON.stringify(tools)).not.toMatch(/secret-one|secret-two/);
  });

  it('a listed tool that does not exist gets a notice with its position', async () => {
    const { notices } = await load({
      'parley.yaml': 'tools: { mcpServers: { files: { command: npx } } }',
      'agents/dev.md': '---\ntools: [shell, hire, dismiss, mcp__files__read, mcp__web__get, fs_raed]\n---\n',
    });
    expect(notices.join('\n')).toMatch(
      /dev\.md:2:\d+: no server of tools\.mcpServers offers the tool mcp__web__get/,
    );
    expect(notices.join('\n')).toMatch(/dev\.md:2:\d+: there is no tool fs_raed; did you mean fs_read\?/);
    expect(notices).toHaveLength(3); // and that models are scripted
  });

  it('a pattern can name the tools of a server in an agent, a policy rule, a risk and a node', async () => {
    const { agents, tools, workflows, notices } = await load({
      'parley.yaml':
        'tools: { mcpServers: { web: { command: npx } }, risk: { "mcp__web__*": safe },' +
        ' policy: [{ tool: "mcp__web__get_*", allow: false }] }',
      'agents/dev.md': '---\ntools: ["mcp__web__*", "mcp__wbe__*"]\n---\n',
      'workflows/w.yaml':
        'id: w\nstart: a\nnodes: { a: { agent: dev, brief: x, tools: [mcp__web__get, "mcp__web__p*"], outcomes: { done: end } } }',
    });
    expect(agents[0]?.tools).toEqual(['mcp__web__*', 'mcp__wbe__*']);
    expect([tools.risk, tools.policy[0]?.tool]).toEqual([{ 'mcp__web__*': 'safe' }, 'mcp__web__get_*']);
    expect(workflows[0]?.nodes.a?.tools).toEqual(['mcp__web__get', 'mcp__web__p*']);
    expect(notices.join('\n')).toContain('no server of tools.mcpServers offers the tool mcp__wbe__*');
  });

  it.each(['*', 'mcp__*', 'fs_*', 'mcp__web__*get', `mcp__web__${'x'.repeat(50)}*`])(
    'the pattern %s for tools is refused',
    async (pattern) => {
      const loaded = load({ 'agents/dev.md': `---\ntools: ["${pattern}"]\n---\n` });
      expect(await refusalOf(loaded)).toContain('mcp__<server>__*');
    },
  );
});

it('a policy rule for an unknown agent is refused, with the most similar slug', async () => {
  const refusal = await refusalOf(
    loadYaml('tools: { policy: [ { agent: dve, tool: shell, allow: false } ] }'),
  );
  expect(refusal).toContain('parley.yaml:1:29: tools.policy[0].agent\n    seen:     "dve"');
  expect(refusal).toContain('did you mean "dev"?');
});

it('a rule or risk for a tool that does not exist gets a notice', async () => {
  const { notices } = await loadYaml(
    'models: { default: { provider: scripted } }\ntools: { risk: { fs_wirte: safe, shell: risky }, policy: [ { tool: shel, allow: false } ] }',
  );
  expect(notices).toEqual([
    expect.stringMatching(/parley\.yaml:2:\d+: there is no tool fs_wirte; did you mean fs_write\?/),
    expect.stringMatching(/parley\.yaml:2:\d+: there is no tool shel; did you mean shell\?/),
  ]);
});

it.each([
  ['^git status', '^git status$'],
  ['git status$', '^git status$'],
  ['git', '^git$'],
  ['', '^$'],
  ['^a|b$', '^(a|b)$'],
  ['^a$|^b$', '^(a$|^b)$'],
  ['^cost\\$', '^cost\\$$'],
  ['^[ab$]', '^[ab$]$'],
  ['^(a|b$)', '^(a|b$)$'],
])('a rule that allows %j is refused: the pattern of the whole argument is %j', async (pattern, whole) => {
  const rule = { tool: 'shell', match: { command: pattern }, allow: true };
  const refusal = await refusalOf(loadYaml(JSON.stringify({ tools: { policy: [rule] } })));
  expect(refusal).toContain('tools.policy[0].match.command');
  const expected = refusal.split('\n').filter((line) => line.includes('expected:'));
  expect(expected.map((line) => line.endsWith(`, such as ${whole}`))).toEqual([true]);
});

it('a pattern of the whole argument is accepted, and any pattern in a rule that forbids', async () => {
  const patterns = ['^git status$', '^(a|b)$', '^[|]$', '^a\\|b$', '^npm (test|run (lint|build))$'];
  const rules = [
    ...patterns.map((command) => ({ tool: 'shell', match: { command }, allow: true })),
    { tool: 'shell', match: { command: 'rm' }, allow: false },
  ];
  expect((await loadYaml(JSON.stringify({ tools: { policy: rules } }))).tools.policy).toEqual(rules);
});
