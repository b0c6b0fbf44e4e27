import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connect, type Entry, type ParleyClient, type View } from '../../src/client/index.ts';
import { type Config, loadConfig } from '../../src/config/index.ts';
import {
  createDaemon,
  explainOffline,
  exportConversation,
  fsck,
  importConversation,
} from '../../src/daemon/index.ts';
import { runCli } from '../support/cli.ts';
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts';
import { ask, entriesOf } from '../support/log.ts';
import { startNatsServer, type TestNatsServer } from '../support/nats-server.ts';
import { providerSettings } from '../support/project.ts';
import { createSteps, type Steps } from '../support/steps.ts';

/**
 * A conversation whose agents are edited between its turns, twenty times. Every request is explained with the bytes that
 * the provider got: L6.
 */

interface Team {
  settings: Record<string, unknown>;
  agents: Record<string, { head: Record<string, unknown>; persona: string } | null>;
  prompts: Record<string, string>;
}
type Edit = readonly [what: string, change: (team: Team, parts: Parts) => void];

const ONLY_LS = { tool: 'shell', match: { command: '^ls$' }, allow: true };
const EDITS: readonly Edit[] = [
  ['persona', (team) => persona(team, 'pm', 'You plan briefly.')],
  ['persona of another', (team) => persona(team, 'dev', 'You build well.')],
  ['base prompt', (team) => prompt(team, { chat: 'Talk. The others:\n{{agents}}' })],
  ['tool prompt', (team) => prompt(team, { tools: 'Use tools with care.' })],
  ['tools', (team) => head(team, 'pm', { tools: ['fs_read', 'shell', 'recall'] })],
  ['roster', (team) => head(team, 'dev', { description: 'builds houses' })],
  [
    'new agent',
    (team) => agent(team, 'qa', { head: { name: 'Qa', description: 'checks' }, persona: 'Check.' }),
  ],
  ['name', (team) => head(team, 'pm', { name: 'Pamela' })],
  ['policy', (team) => tools(team, { policy: [{ tool: 'shell', allow: false }] })],
  ['policy by arguments', (team) => tools(team, { policy: [ONLY_LS] })],
  ['server', (team, { steps }) => tools(team, { mcpServers: { steps: steps.server } })],
  ['server tools', (team) => head(team, 'pm', { tools: ['fs_read', 'mcp__steps__*'] })],
  ['lost server', (team) => tools(team, { mcpServers: { steps: { command: '/bin/false' } } })],
  ['model', (team) => model(team, { model: 'another-model' })],
  ['output', (team) => model(team, { maxOutputTokens: 777 })],
  ['window', (team) => model(team, { contextTokens: 60_000 })],
  ['provider form', (team) => model(team, { profile: 'mistral' })],
  ['another form', (team) => model(team, { profile: 'deepseek' })],
  ['view', (team) => head(team, 'pm', { context: { contextMaxMessages: 400 } })],
  ['removed agent', (team) => agent(team, 'dev', null)],
];

const agent = ({ agents }: Team, slug: string, to: Team['agents'][string]) => {
  agents[slug] = to;
};
const persona = ({ agents }: Team, slug: string, text: string) => {
  const known = agents[slug];
  if (known) agents[slug] = { ...known, persona: text };
};
const prompt = (team: Team, more: Record<string, string>) => {
  team.prompts = { ...team.prompts, ...more };
};
const head = ({ agents }: Team, slug: string, more: object) => {
  const known = agents[slug];
  if (known) agents[slug] = { ...known, head: { ...known.head, ...more } };
};
const tools = (team: Team, more: object) => {
  team.settings = { ...team.settings, tools: { ...(team.settings.tools as object), ...more } };
};
const model = (team: Team, more: object) => {
  const { models } = team.settings as { models: { default: object } };
  team.settings = { ...team.settings, models: { default: { ...models.default, ...more } } };
};

interface Parts {
  readonly root: string;
  readonly nats: TestNatsServer;
  readonly provider: FakeProvider;
  readonly steps: Steps;
}

async function writeTeam(directory: string, { settings, agents, prompts }: Team): Promise<void> {
  await rm(directory, { recursive: true, force: true });
  for (const folder of ['agents', 'prompts']) await mkdir(join(directory, folder), { recursive: true });
  await writeFile(join(directory, 'parley.yaml'), JSON.stringify(settings));
  for (const [slug, agent] of Object.entries(agents))
    if (agent)
      await writeFile(
        join(directory, 'agents', `${slug}.md`),
        `---\n${JSON.stringify(agent.head)}\n---\n${agent.persona}\n`,
      );
  for (const [name, text] of Object.entries(prompts))
    await writeFile(join(directory, 'prompts', `${name}.md`), `${text}\n`);
}

const lines: string[] = [];
const note = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
const log = { info: () => undefined, warn: note, error: note };

async function withDaemon<T>(
  config: Config,
  nats: string,
  use: (client: ParleyClient) => Promise<T>,
): Promise<T> {
  const daemon = createDaemon({ config, log, mayInstall: false });
  await daemon.start();
  const client = await connect({ url: nats, requests: { timeoutMs: 20_000 } });
  try {
    return await use(client);
  } finally {
    await client.close();
    await daemon.stop();
  }
}

/** Answers with a call of a tool, then with words. */
function startTalker(): Promise<FakeProvider> {
  return startFakeProvider(({ json }) => {
    const last = json.messages?.at(-1)?.role;
    return last === 'tool'
      ? { text: 'Read.' }
      : { text: 'Looking.', toolCalls: [{ name: 'fs_read', arguments: '{"path":"@project/none"}' }] };
  });
}

interface Recorded extends Parts {
  readonly config: Config;
  readonly entries: readonly Entry[];
}

/** One turn of each agent before the first edit and after each. */
async function record(store: 'file' | 'jetstream'): Promise<Recorded> {
  const root = await mkdtemp(join(tmpdir(), 'parley-definitions-'));
  const parts: Parts = {
    root,
    nats: await startNatsServer(),
    provider: await startTalker(),
    steps: createSteps(),
  };
  const team: Team = {
    settings: providerSettings(parts.provider.url, { tools: { project: root } }) as Record<string, unknown>,
    agents: {
      pm: {
        head: { name: 'Pam', description: 'plans', tools: ['fs_read', 'handoff'] },
        persona: 'You plan.',
      },
      dev: { head: { name: 'Dev', description: 'builds', tools: ['fs_read'] }, persona: 'You build.' },
    },
    prompts: {},
  };
  const load = async () => {
    await writeTeam(join(root, 'config'), team);
    return loadConfig({
      configDirectory: join(root, 'config'),
      env: {},
      flags: { data: join(root, 'data'), nats: parts.nats.url, store, http: 'off' },
    });
  };
  let config = await load();
  let entries: readonly Entry[] = [];
  for (const [what, change] of [['nothing', () => undefined] as Edit, ...EDITS]) {
    change(team, parts);
    config = await load();
    entries = await withDaemon(config, parts.nats.url, async (client) => {
      const slugs = Object.keys(team.agents).filter((slug) => team.agents[slug] !== null);
      for (const slug of slugs) {
        await ask(client, 'demo', `after: ${what}`, { publisher: 'ann', to: [slug] });
      }
      return entriesOf(client, 'demo');
    });
  }
  return { ...parts, config, entries };
}

async function release({ root, nats, provider, steps }: Parts): Promise<void> {
  await provider.close();
  await nats.stop();
  steps.remove();
  await rm(root, { recursive: true, force: true });
}

const answersIn = (entries: readonly Entry[]) =>
  entries.flatMap((entry) =>
    entry.type === 'message' && entry.role === 'assistant'
      ? [{ at: entry.index, agent: entry.author.id }]
      : [],
  );

/** Every answer is explained with the bytes that its provider got. */
async function checkAll(
  { entries, provider }: Recorded,
  view: (request: { agent: string; at: number }) => Promise<View>,
): Promise<void> {
  const sent = new Set(provider.requests.map(({ body }) => createHash('sha256').update(body).digest('hex')));
  const answers = answersIn(entries);
  expect(answers.length).toBeGreaterThan(2 * 2 * EDITS.length);
  const definitions = new Set<string>();
  for (const { agent, at } of answers) {
    const { report } = await view({ agent, at });
    const { requestHash, sent: isSent, definition } = report;
    expect({ at, agent, isSent, recorded: definition.recorded }).toEqual({
      at,
      agent,
      isSent: true,
      recorded: true,
    });
    expect(sent, `entry ${at}`).toContain(requestHash);
    if (agent === 'pm') definitions.add(definition.hash);
  }
  // Edits of another agent's persona do not change pm's definition.
  expect(definitions.size).toBe(EDITS.length - 1);
}

describe('a log with twenty edits of its agents, in a directory', () => {
  let recorded: Recorded;
  let data: string;
  beforeAll(async () => {
    recorded = await record('file');
    data = join(recorded.root, 'data');
  }, 240_000);
  afterAll(() => release(recorded));

  it('every request is explained with its bytes by the daemon, and by the command without a daemon', async () => {
    const { config, nats } = recorded;
    await withDaemon(config, nats.url, (client) =>
      checkAll(recorded, (request) => client.request('view', { conversation: 'demo', ...request })),
    );
    await checkAll(
      recorded,
      (request) =>
        explainOffline({ dataDirectory: data, config, conversation: 'demo', ...request }) as Promise<View>,
    );
  });

  it('the command shows the changed lines of two definitions, with a daemon and from the files alone', async () => {
    const { config, nats, entries } = recorded;
    const answerAfter = (what: string) => {
      const asked = entries.findIndex((one) => one.type === 'message' && one.content === `after: ${what}`);
      return String(answersIn(entries).find(({ agent, at }) => agent === 'pm' && at > asked)?.at);
    };
    const shown = async (from: string, to: string) => {
      const places = ['--at', answerAfter(from), '--diff', answerAfter(to)];
      const explain = ['explain', 'demo', '--agent', 'pm', ...places];
      const offline = await runCli([...explain, '--data', data, '--config', config.directory]);
      const online = await runCli([...explain, '--nats', nats.url]);
      expect(online.stdout).toBe(offline.stdout);
      return offline.stdout;
    };
    await withDaemon(config, nats.url, async () => {
      expect(await shown('nothing', 'persona')).toContain(
        '~ definition: persona\n    @@ -1,1 +1,1 @@\n    -You plan.\n    +You plan briefly.\n',
      );
      expect(await shown('lost server', 'model')).toMatch(/-.*"fake-model",\n.*\+.*"another-model",/);
      expect(await shown('tool prompt', 'tools')).toMatch(/\+ definition: tool\.shell\n {4}@@ -0,0 \+1,/);
    });
  });

  it('every request is explained from an export that is imported elsewhere, with another configuration', async () => {
    const elsewhere = join(recorded.root, 'elsewhere');
    const file = join(recorded.root, 'demo.jsonl');
    const exported = await exportConversation(data, 'demo', 'jsonl');
    await writeFile(file, `${exported}\n`);
    await importConversation({ dataDirectory: elsewhere, file, conversation: 'demo', agent: 'pm' });
    const again = (await exportConversation(elsewhere, 'demo', 'jsonl')).replaceAll(
      ',"copiedFrom":"demo"',
      '',
    );
    expect(again.split('\n').filter((line) => !line.includes('"type":"forked"'))).toEqual(
      exported.split('\n'),
    );
    await writeTeam(join(recorded.root, 'other'), {
      settings: { defaultAgent: 'solo', models: providerSettings(recorded.provider.url).models },
      agents: { solo: { head: { name: 'Solo', description: 'else' }, persona: 'Else.' } },
      prompts: {},
    });
    const flags = { data: elsewhere, http: 'off' };
    const config = await loadConfig({ configDirectory: join(recorded.root, 'other'), env: {}, flags });
    await checkAll(
      recorded,
      (request) =>
        explainOffline({
          dataDirectory: elsewhere,
          config,
          conversation: 'demo',
          ...request,
        }) as Promise<View>,
    );
    expect(await findingsIn(elsewhere)).toEqual([]);
  });

  it('fsck rebuilds every request, and reports a definition that is missing or damaged', async () => {
    expect(await findingsIn(data)).toEqual([]);
    const folder = join(data, 'definitions');
    const [first = ''] = await readdir(folder);
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect((await stat(join(folder, first))).mode & 0o777).toBe(0o600);
    const text = await readFile(join(folder, first), 'utf8');
    await writeFile(join(folder, first), `${text} `);
    expect(await findingsIn(data)).toContain('definition');
    await rm(join(folder, first));
    expect(await findingsIn(data)).toContain('definition');
    await writeFile(join(folder, first), text);
    await writeFile(join(folder, '0'.repeat(64)), 'no entry names it');
    expect(await findingsIn(data)).toEqual([]);
  });
});

async function findingsIn(dataDirectory: string): Promise<string[]> {
  const reports = await fsck({ dataDirectory, repair: false, views: true });
  return reports.flatMap(({ findings }) => findings.map(({ kind }) => kind));
}

describe('a log with twenty edits of its agents, in the jetstream store', () => {
  let recorded: Recorded;
  beforeAll(async () => {
    recorded = await record('jetstream');
  }, 240_000);
  afterAll(() => release(recorded));

  it('every request is explained with its bytes', async () => {
    await withDaemon(recorded.config, recorded.nats.url, (client) =>
      checkAll(recorded, (request) => client.request('view', { conversation: 'demo', ...request })),
    );
  });
});
