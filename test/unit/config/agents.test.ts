import { describe, expect, it } from 'vitest';
import { load, refusalOf } from './folder.ts';

describe("an agent's file", () => {
  it('gives its card from the front matter and its persona from the rest', async () => {
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

  it('may be a persona alone: the name is made from the slug', async () => {
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

  it('may have been written on Windows', async () => {
    const { agents } = await load({ 'agents/dev.md': '\uFEFF---\r\nname: Devi\r\n---\r\nOne\r\nTwo\r\n' });
    expect(agents).toMatchObject([{ name: 'Devi', persona: 'One\nTwo' }]);
  });

  it('keeps a dollar and a name in braces as they stand', async () => {
    const reference = '$' + '{HOME}';
    const { agents } = await load(
      { 'agents/dev.md': `---\ndescription: "${reference}"\n---\nSay ${reference}.` },
      { env: { HOME: '/root' } },
    );
    expect(agents).toMatchObject([{ description: reference, persona: `Say ${reference}.` }]);
  });

  it.each([
    ['---\nname: Dev\nNo end', 'dev.md:1\n', 'a second line of ---'],
    ['---\nname: [\n---\n', 'dev.md:2:8\n', 'valid YAML'],
    ['---\ncolour: red\n---\n', 'dev.md:2:9: colour', 'known here: name,'],
    ['---\nphase: [chat]\n---\n', 'dev.md:2:8: phase', 'did you mean phases?'],
    ['---\nname: "a]: b"\n---\n', 'dev.md:2:7: name', 'without [ and ]'],
    ['---\nname: "a\\nb"\n---\n', 'dev.md:2:7: name', 'one line'],
    ['---\nname: " a"\n---\n', 'dev.md:2:7: name', 'without spaces around it'],
    ['---\nmodes: [chatt]\n---\n', 'dev.md:2:9: modes[0]', 'one of chat, agent, run'],
    ['---\nphases: [sleep]\n---\n', 'dev.md:2:10: phases[0]', 'a phase: one of chat,'],
    ['---\nmodel: defualt\n---\n', 'dev.md:2:8: model', 'did you mean "default"?'],
    ['---\nruntime: cloud\n---\n', 'dev.md:2:10: runtime', 'one of local, bus'],
    ['---\ntools: ["no spaces"]\n---\n', 'dev.md:2:9: tools[0]', 'a tool name'],
    ['---\ncontext: { contextMaxMessages: 0 }\n---\n', 'context.contextMaxMessages', 'at least 1'],
  ])('like %j is refused', async (text, where, expected) => {
    const refusal = await refusalOf(load({ 'agents/dev.md': text }));
    expect(refusal).toContain('has 1 problem\n');
    expect(refusal).toContain(where);
    expect(refusal).toContain(expected);
  });

  it.each(['Dev.md', '-dev.md', 'de_v.md', `${'a'.repeat(65)}.md`])('named %s is refused', async (name) => {
    expect(await refusalOf(load({ [`agents/${name}`]: '' }))).toContain(
      'is the slug by which people address',
    );
  });
});

describe('a number that is none', () => {
  it.each(['.inf', '-.inf', '.nan'])('is reported as it is written: %s', async (seen) => {
    const text = await refusalOf(load({ 'parley.yaml': `limits: { turnSeconds: ${seen} }` }));
    expect(text).toContain(`limits.turnSeconds\n    seen:     ${seen}\n    expected: a number`);
  });
});

describe('the agents together', () => {
  it('stand in slug order; hidden files and other kinds of files are none', async () => {
    const { agents, roster } = await load({
      'agents/b.md': '',
      'agents/a.md': '',
      'agents/.c.md': '',
      'agents/notes.txt': '',
    });
    expect(agents.map(({ slug }) => slug)).toEqual(['a', 'b']);
    expect([...roster.agents.keys()]).toEqual(['a', 'b']);
  });

  it('may not share a display name, in whatever case', async () => {
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
  ])('may not look like %s, and the message names both', async (_, name, message) => {
    const text = await refusalOf(
      load({ 'agents/a.md': '---\nname: Sam\n---\n', 'agents/b.md': `---\nname: ${name}\n---\n` }),
    );
    expect(text).toContain('agents/b.md:2:7: name\n    seen:');
    expect(text).toContain(message);
  });

  it.each(['Parley', 'PARLEY', 'Ｐarley'])('may not be named %s, as the system speaks', async (name) => {
    const text = await refusalOf(load({ 'agents/a.md': `---\nname: ${name}\n---\n` }));
    expect(text).toContain('agents/a.md:2:7: name');
    expect(text).toContain('this is the name of the system');
  });

  it("may not bear another one's slug as a name", async () => {
    const text = await refusalOf(
      load({ 'agents/a.md': '---\nname: Dev\n---\n', 'agents/dev.md': '---\nname: X\n---\n' }),
    );
    expect(text).toContain('has 1 problem\n');
    expect(text).toContain('this is the slug of agents/dev.md');
  });

  it('have pm as their default, else the first, unless one is named', async () => {
    const files = { 'agents/a.md': '', 'agents/pm.md': '' };
    expect((await load(files)).defaultAgent).toBe('pm');
    expect((await load({ 'agents/b.md': '', 'agents/a.md': '' })).defaultAgent).toBe('a');
    const named = await load({ ...files, 'parley.yaml': 'defaultAgent: a' });
    expect(named.defaultAgent).toBe('a');
    expect(named.roster.defaultAgent).toBe('a');
  });
});
