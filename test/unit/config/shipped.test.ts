import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { BUILT_IN_TOOLS, editorSchemas, loadConfig, SHIPPED_CONFIG } from '../../../src/config/index.ts';
import { BUILT_IN_PHASES } from '../../../src/conversation/index.ts';
import { attribution } from '../../../src/conversation/text/text.ts';
import { newFolder } from '../../support/lifetime.ts';
import { loadYaml } from './folder.ts';

const packageJson = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  exports: Record<string, unknown>;
};
const text = (path: string) => readFile(`${SHIPPED_CONFIG}/${path}`, 'utf8');

describe('the shipped configuration', () => {
  const loading = loadConfig({ configDirectory: SHIPPED_CONFIG, env: {} });

  it('it works with an empty environment, with a notice that models are scripted', async () => {
    const { notices, defaultAgent, agents } = await loading;
    expect(notices).toHaveLength(1);
    expect(defaultAgent).toBe('pm');
    expect(agents.map(({ slug }) => slug)).toEqual(['dev', 'planner', 'pm', 'reviewer']);
  });

  it('it has one agent for each phase', async () => {
    const { agents } = await loading;
    for (const phase of Object.keys(BUILT_IN_PHASES)) {
      expect(agents.filter((agent) => agent.phases.includes(phase)).map(({ slug }) => slug)).toHaveLength(1);
    }
  });

  it('its agents have personas and tools that exist', async () => {
    const builtIn: readonly string[] = BUILT_IN_TOOLS;
    for (const { persona, tools } of (await loading).agents) {
      expect(persona.split('\n').length).toBeGreaterThanOrEqual(15);
      expect(tools.filter((tool) => !builtIn.includes(tool))).toEqual([]);
    }
  });

  it('its workflow plans, implements, verifies with a way back, and reflects', async () => {
    const { workflows, agents } = await loading;
    expect(workflows.map(({ id, start }) => [id, start])).toEqual([['ship-it', 'plan']]);
    const { nodes } = workflows[0]!;
    expect(Object.entries(nodes).map(([name, { agent }]) => [name, agent])).toEqual([
      ['plan', 'planner'],
      ['implement', 'dev'],
      ['verify', 'reviewer'],
      ['reflect', 'pm'],
    ]);
    expect(nodes.verify?.outcomes).toEqual({ passed: 'reflect', failed: 'implement', 'wrong-plan': 'plan' });
    expect(agents.filter(({ tools }) => tools.includes('complete_node'))).toEqual([]);
  });

  it('each brief of its workflow says when to choose which outcome', async () => {
    for (const { brief, outcomes, tools } of Object.values((await loading).workflows[0]!.nodes)) {
      for (const outcome of Object.keys(outcomes)) expect(brief).toContain(`\`${outcome}\`:`);
      expect(brief.split('\n').length).toBeGreaterThanOrEqual(8);
      expect(tools).not.toContain('handoff');
    }
  });

  it('its prompts explain the markers as they are written', async () => {
    const { prompts } = await loading;
    for (const base of [prompts.baseChat, prompts.baseRun]) {
      expect(base).toContain('=== MESSAGES WHILE YOU WERE AWAY ===');
      expect(base).toContain('=== NEW INTERACTION ===');
      expect(base).toContain('[Name]: ');
    }
  });

  it('its prompts name the attributions of other agents in each role', async () => {
    const { prompts } = await loading;
    const author = { kind: 'agent', id: 'dev', name: 'Name' } as const;
    for (const prompt of [prompts.baseChat, prompts.baseRun])
      for (const role of ['system', 'user'] as const) expect(prompt).toContain(attribution(author, role));
  });

  it('its parley.yaml is valid without comment signs, and then contains the defaults', async () => {
    const shown = (await text('parley.yaml'))
      .split('\n')
      .slice(1) // the line for editors
      .filter((line) => /^# {1,}[\w-]+:|^# {3,}(- )/.test(line) || line.startsWith('#   '))
      .map((line) => line.slice(2))
      .join('\n');
    expect(Object.keys(parse(shown))).toEqual(
      Object.keys(Object((await editorSchemas())['parley.schema.json']?.properties)),
    );
    const ready = shown.replace('defaultAgent: pm', 'defaultAgent: dev').replace(/^ +script:.*$/m, '');
    const config = await loadYaml(ready, { env: { OPENAI_API_KEY: 'k', WEB_TOKEN: 't' } });
    const plain = await loadYaml('');
    for (const key of [
      'subjectPrefix',
      'context',
      'limits',
      'retry',
      'approvals',
      'publishers',
      'shutdown',
      'remoteAgents',
    ] as const) {
      expect(config[key]).toEqual(plain[key]);
    }
  });

  it.each(['parley.schema.json', 'agent.schema.json', 'workflow.schema.json'])(
    'the JSON Schema %s is current (`npm run schema` writes it) and exported by the package',
    async (name) => {
      const schemas = await editorSchemas();
      expect(JSON.parse(await text(name))).toEqual(JSON.parse(JSON.stringify(schemas[name])));
      expect(Object.values(packageJson.exports)).toContain(`./config/${name}`);
    },
  );

  it('the schema of workflows requires what a workflow needs', async () => {
    const schema = (await editorSchemas())['workflow.schema.json'];
    expect(schema).toMatchObject({
      required: ['id', 'start', 'nodes'],
      properties: { nodes: { additionalProperties: { required: ['agent', 'brief', 'outcomes'] } } },
    });
  });
});

const TEMPLATES = fileURLToPath(new URL('../../../templates', import.meta.url));

it.each(['team', 'single', 'workflow', 'support'])(
  'the template %s answers from its script without a key, and from a real model with one in .env',
  async (template) => {
    const workingDirectory = await newFolder({ 'README.md': '' });
    for (const part of ['common', template])
      await cp(join(TEMPLATES, part), workingDirectory, { recursive: true });
    const offline = await loadConfig({ env: {}, workingDirectory });
    const script = join(workingDirectory, 'config/script.yaml');
    expect(offline.models.default).toMatchObject({ provider: 'scripted', model: 'scripted', script });
    expect(offline.notices).toEqual([expect.stringContaining('OPENAI_API_KEY is not set')]);
    await writeFile(join(workingDirectory, '.env'), 'OPENAI_API_KEY=sk-from-file');
    const { models, notices, environmentFiles } = await loadConfig({ env: {}, workingDirectory });
    expect(models.default).toMatchObject({ provider: 'openai', model: 'gpt-5-mini' });
    expect(environmentFiles).toMatchObject([{ names: ['OPENAI_API_KEY'] }]);
    expect(notices).toEqual([]);
  },
);
