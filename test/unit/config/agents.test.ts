import { describe, expect, it } from 'vitest';
import { load, refusalOf } from './folder.ts';

describe('an agent file', () => {
  it('the front matter becomes the card, and the rest becomes the persona', async () => {
    const config = await load({
      'agents/qa.md':
        '---\nname: Quality\ndescription: tests\nphases: [verification]\nmodes: [run]\ntools: [shell]\nruntime: bus\n' +
        'context: { contextMaxMessages: 20 }\n---\n\n# You test\n\n---\nStill the persona.\n',
    });
    expect(config.agents).toMatchObject([
      {
        slug: 'qa',
        name: 'Quality',
        description: 'tests',
        phases: ['verification'],
        modes: ['run'],
        model: 'default',
        tools: ['shell'],
        runtime: 'bus',
        persona: '# You test\n\n---\nStill the persona.',
        context: { contextMaxMessages: 20, contextMaxChars: null, includeToolResultsInContext: true },
      },
    ]);
    expect(config.roster.agents.get('qa')?.name).toBe('Quality');
  });

  it('a file without front matter is the persona, and the name is derived from the slug', async () => {
    const { agents } = await load({ 'agents/site-keeper.md': 'You keep.' });
    expect(agents).toMatchObject([
      {
        slug: 'site-keeper',
        name: 'Site Keeper',
        description: '',
        phases: [],
        modes: [],
        model: 'default',
        tools: [],
        runtime: 'local',
        persona: 'You keep.',
      },
    ]);
  });

  it('Windows line ends and a byte order mark are accepted', async () => {
    const { agents } = await load({ 'agents/dev.md': '\uFEFF---\r\nname: Devi\r\n---\r\nOne\r\nTwo\r\n' });
    expect(agents).toMatchObject([{ name: 'Devi', persona: 'One\nTwo' }]);
  });

  it('a dollar sign with a name in braces is not replaced in an agent file', async () => {
    const reference = '$' + '{HOME}';
    const { agents } = await load(
      { 'agents/dev.md': `---\ndescription: "${reference}"\n---\nSay ${reference}.` },
      { env: { HOME: '/root' } },
    );
    expect(agents).toMatchObject([{ description: reference, persona: `Say ${reference}.` }]);
  });

  it.each([
    ['---\nname: Dev\nNo end', 'dev.md:1:1\n', 'a second line of ---'],
    ['---\nname: [\n---\n', 'dev.md:2:8\n', 'valid YAML'],
    ['---\ncolour: red\n---\n', 'dev.md:2:1: colour', 'known here: name,'],
    ['---\nphase: [chat]\n---\n', 'dev.md:2:1: phase', 'did you mean phases?'],
    ['---\nname: "a]: b"\n---\n', 'dev.md:2:7: name', 'without [ and ]'],
    ['---\nname: "a\\nb"\n---\n', 'dev.md:2:7: name', 'one line'],
    ['---\nname: " a"\n---\n', 'dev.md:2:7: name', 'without spaces around it'],
    ['---\nmodes: [chatt]\n---\n', 'dev.md:2:9: modes[0]', 'one of chat, agent, run'],
    ['---\nphases: [sleep]\n---\n', 'dev.md:2:10: phases[0]', 'a phase: one of chat,'],
    ['---\nmodel: defualt\n---\n', 'dev.md:2:8: model', 'did you mean "default"?'],
    ['---\nruntime: cloud\n---\n', 'dev.md:2:10: runtime', 'one of local, bus'],
    ['---\nruntime: bus\nabsent: never\n---\n', 'dev.md:3:9: absent', 'one of fail, wait'],
    ['---\nruntime: acp\n---\n', 'dev.md:2:10: command', 'the command of the coding agent'],
    ['---\nruntime: acp\ncommand: [x]\npermissions: ask\n---\n', 'permissions', 'rules of tools.policy'],
    ['---\nidleSeconds: 5\n---\n', 'idleSeconds', 'runtime: acp, or no idleSeconds'],
    ['---\nruntime: acp\ncommand: [x]\ncwd: /etc\n---\n', 'cwd', 'a folder of the project'],
    ['---\nabsent: wait\n---\n', 'dev.md:2:9: absent', 'runtime: bus, or no absent'],
    ['---\nruntime: bus\nabsentSeconds: 5\n---\n', 'absentSeconds', 'absent: wait, or no absentSeconds'],
    ['---\ntools: ["no spaces"]\n---\n', 'dev.md:2:9: tools[0]', 'a tool name'],
    ['---\ncontext: { contextMaxMessages: 0 }\n---\n', 'context.contextMaxMessages', 'at least 1'],
  ])('an agent file that contains %j is refused', async (text, where, expected) => {
    const refusal = await refusalOf(load({ 'agents/dev.md': text }));
    expect(refusal).toContain('has 1 problem\n');
    expect(refusal).toContain(where);
    expect(refusal).toContain(expected);
  });

  it.each(['Dev.md', '-dev.md', 'de_v.md', `${'a'.repeat(65)}.md`])(
    'an agent file named %s is refused',
    async (name) => {
      expect(await refusalOf(load({ [`agents/${name}`]: '' }))).toContain(
        'is the slug by which people address',
      );
    },
  );
});

describe('a number that JSON cannot represent', () => {
  it.each(['.inf', '-.inf', '.nan'])('the number %s is reported as it is written', async (seen) => {
    const text = await refusalOf(load({ 'parley.yaml': `limits: { turnSeconds: ${seen} }` }));
    expect(text).toContain(`limits.turnSeconds\n    seen:     ${seen}\n    expected: a number`);
  });
});

describe('the agents of a configuration', () => {
  it('agents are sorted by slug, and hidden files and other kinds of files are ignored', async () => {
    const { agents, roster } = await load({
      'agents/b.md': '',
      'agents/a.md': '',
      'agents/.c.md': '',
      'agents/notes.txt': '',
    });
    expect(agents.map(({ slug }) => slug)).toEqual(['a', 'b']);
    expect([...roster.agents.keys()]).toEqual(['a', 'b']);
  });

  it('two agents cannot have the same display name, in any case', async () => {
    const text = await refusalOf(
      load({ 'agents/a.md': '---\nname: Sam\n---\n', 'agents/b.md': '---\nname: SAM\n---\n' }),
    );
    expect(text).toContain('agents/b.md:2:7: name\n    seen:     "SAM"');
    expect(text).toContain('this is the name of agents/a.md');
  });

  it.each([
    ['an agent', 'S\u0430m', 'this is the name of agents/a.md, "Sam"'],
    ['a slug', '\u0430', 'this is the slug of agents/a.md, "a"'],
    ['the system', 'P\u0430rl\u200bey', 'this is the name of the system, "Parley"'],
  ])('an agent name that looks like %s is refused, and the message shows both', async (_, name, message) => {
    const text = await refusalOf(
      load({ 'agents/a.md': '---\nname: Sam\n---\n', 'agents/b.md': `---\nname: ${name}\n---\n` }),
    );
    expect(text).toContain('agents/b.md:2:7: name\n    seen:');
    expect(text).toContain(message);
  });

  it.each(['Parley', 'PARLEY', 'Ｐarley'])('an agent cannot be named %s, like the system', async (name) => {
    const text = await refusalOf(load({ 'agents/a.md': `---\nname: ${name}\n---\n` }));
    expect(text).toContain('agents/a.md:2:7: name');
    expect(text).toContain('this is the name of the system');
  });

  it.each(['a2a', 'ag-ui', 'console', 'http', 'mcp', 'openai', 'operator'])(
    'an agent cannot have the slug or the name %s, under which callers without a publisher post',
    async (taken) => {
      const text = await refusalOf(load({ [`agents/${taken}.md`]: '', 'agents/dev.md': '' }));
      expect(text).toContain(`agents/${taken}.md\n    seen:     the slug "${taken}"`);
      const named = await refusalOf(load({ 'agents/dev.md': `---\nname: ${taken.toUpperCase()}\n---\n` }));
      expect(named).toContain('agents/dev.md:2:7: name');
    },
  );

  it('an agent name cannot be the slug of another agent', async () => {
    const text = await refusalOf(
      load({ 'agents/a.md': '---\nname: Dev\n---\n', 'agents/dev.md': '---\nname: X\n---\n' }),
    );
    expect(text).toContain('has 1 problem\n');
    expect(text).toContain('this is the slug of agents/dev.md');
  });

  it('the default agent is the configured one, else pm, else the first', async () => {
    const files = { 'agents/a.md': '', 'agents/pm.md': '' };
    expect((await load(files)).defaultAgent).toBe('pm');
    expect((await load({ 'agents/b.md': '', 'agents/a.md': '' })).defaultAgent).toBe('a');
    const named = await load({ ...files, 'parley.yaml': 'defaultAgent: a' });
    expect(named.defaultAgent).toBe('a');
    expect(named.roster.defaultAgent).toBe('a');
  });
});
