import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  finishThread,
  killDaemon,
  THREAD_SETTINGS,
  threadFaults,
  threadModel,
  threadTeam,
} from '../support/acp/thread.ts';
import { event, type FakeHandler, startFakeProvider } from '../support/fake-provider.ts';
import { shared, sharedFolder } from '../support/lifetime.ts';
import { followUntil, ofType } from '../support/log.ts';
import { openProject } from '../support/project.ts';

/** Coding agents as npm has them, in a thread with a person and two LLM agents. Their models are stand-ins on loopback. */

const folder = sharedFolder();
const HOMES = ['CONFIG', 'DATA', 'CACHE', 'STATE'];
const OPENCODE = {
  OPENCODE_CONFIG: join(folder, 'opencode.json'),
  OPENCODE_DISABLE_MODELS_FETCH: '1',
  ...Object.fromEntries(HOMES.map((name) => [`XDG_${name}_HOME`, join(folder, name)])),
};
const CODEX = { CODEX_HOME: join(folder, 'codex'), STANDIN_KEY: 'none' };
const GEMINI = {
  ...{ GEMINI_API_KEY: 'none', GEMINI_CLI_HOME: join(folder, 'gemini'), GEMINI_TELEMETRY_ENABLED: 'false' },
  GEMINI_CLI_TRUST_WORKSPACE: 'true',
};

const agentFile = (name: string, command: readonly string[], env: Readonly<Record<string, string>>) => {
  const [program = '', ...args] = command;
  return `---
name: ${name}
runtime: acp
command: ${JSON.stringify([join(folder, 'node_modules/.bin', program), ...args])}
cwd: "@project/"
env: ${JSON.stringify(env)}
tools: [handoff]
---
You write the code.`;
};

const project = shared(() =>
  openProject({
    nats: {},
    model: threadModel((file) => `write ${file}`),
    agents: {
      ...threadTeam(agentFile('Dev', ['opencode', 'acp'], OPENCODE)),
      codex: agentFile('Cody', ['codex-acp'], CODEX),
    },
    settings: THREAD_SETTINGS,
  }),
);

/** The file that the thread is about. */
const fileIn = (text: string) => /please make ([\w.-]+)/.exec(text)?.[1] ?? '';

/** Writes the file, then hands over to Quinn by the tool that Parley offers. */
const completions: FakeHandler = ({ body, json }) => {
  const { messages = [] } = json;
  const { tools = [] } = JSON.parse(String(body)) as { tools?: { function: { name: string } }[] };
  if (tools.length === 0) return { text: 'A title' };
  const last = messages.at(-1);
  const handoff = tools.find(({ function: { name } }) => name.endsWith('handoff'))?.function.name ?? 'none';
  const call = (name: string, given: object) => [
    { id: `${name}${messages.length}`, name, arguments: JSON.stringify(given) },
  ];
  return last?.role === 'tool' && /Wrote file/.test(String(last.content))
    ? { toolCalls: call(handoff, { to: 'qa', summary: 'please review' }) }
    : { toolCalls: call('write', { filePath: join(project.root, fileIn(String(body))), content: 'hello' }) };
};

/** Writes the file by a command. */
const responses: FakeHandler = ({ body }) => {
  if (String(body) === '') return { status: 404, body: '' };
  const { input = [], tools = [] } = JSON.parse(String(body)) as {
    input?: { type?: string }[];
    tools?: { name?: string }[];
  };
  const isDone = input.some(({ type }) => type === 'function_call_output');
  const name = tools.find((tool) => /shell|exec_command/.test(tool.name ?? ''))?.name ?? 'shell';
  const command = `printf hello > ${join(project.root, fileIn(String(body)))}`;
  const given = { exec_command: { cmd: command }, shell_command: { command } }[name];
  const text = { type: 'output_text', text: isDone ? 'Written.' : 'I write it.', annotations: [] };
  const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [text] };
  const call = {
    ...{ type: 'function_call', id: 'fc_1', call_id: 'call_1', name, status: 'completed' },
    arguments: JSON.stringify(given ?? { command: ['bash', '-lc', command] }),
  };
  const output = isDone ? [message] : [message, call];
  const base = { id: 'resp_1', object: 'response', created_at: 1, model: 'm' };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  const events = [
    { type: 'response.created', response: { ...base, status: 'in_progress', output: [] } },
    ...output.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
    { type: 'response.completed', response: { ...base, status: 'completed', output, usage } },
  ];
  // Codex never reports the end of a command whose turn ends at once, as with no model.
  const delayMs = isDone ? 1_000 : 0;
  return {
    ...{ headers: { 'content-type': 'text/event-stream' }, delayMs },
    body: events.map((one) => event(one)).join(''),
  };
};

/** Writes the file by a tool of Gemini CLI. */
const contents: FakeHandler = ({ body, path }) => {
  const text = String(body);
  if (text === '') return { status: 404, body: '' };
  if (path.includes('countTokens')) return { body: { totalTokens: 10 } };
  const { tools = [] } = JSON.parse(text) as { tools?: unknown[] };
  const isDone = tools.length === 0 || text.includes('functionResponse');
  const args = { file_path: join(project.root, fileIn(text)), content: 'hello' };
  const call = { functionCall: { id: 'call_1', name: 'write_file', args } };
  const parts = isDone ? [{ text: 'Written.' }] : [{ text: 'I write it.' }, call];
  const candidates = [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }];
  const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
  const answer = { candidates, usageMetadata, modelVersion: 'm' };
  return path.includes('stream')
    ? { headers: { 'content-type': 'text/event-stream' }, body: `data: ${JSON.stringify(answer)}\n\n` }
    : { body: answer };
};

async function standin(handler: FakeHandler): Promise<string> {
  const provider = await startFakeProvider(handler);
  project.defer(() => provider.close());
  return provider.url;
}

beforeAll(async () => {
  const packages = ['opencode-ai', '@zed-industries/codex-acp@0.16', '@google/gemini-cli@0.61'];
  const install = ['install', '--no-audit', '--no-fund', '--prefix', folder, ...packages];
  await promisify(execFile)('npm', install);

  const options = { baseURL: await standin(completions), apiKey: 'none' };
  const provider = {
    standin: { npm: '@ai-sdk/openai-compatible', options, models: { m: { name: 'm' } } },
  };
  const permission = { bash: 'ask', edit: 'ask' };
  const opencode = { provider, model: 'standin/m', permission, autoupdate: false };
  await writeFile(OPENCODE.OPENCODE_CONFIG, JSON.stringify(opencode));

  const codex = `model = "m"
model_provider = "standin"
approval_policy = "untrusted"
sandbox_mode = "danger-full-access"
[model_providers.standin]
name = "standin"
base_url = ${JSON.stringify(await standin(responses))}
wire_api = "responses"
env_key = "STANDIN_KEY"
`;
  await mkdir(CODEX.CODEX_HOME);
  await writeFile(join(CODEX.CODEX_HOME, 'config.toml'), codex);

  Object.assign(GEMINI, { GOOGLE_GEMINI_BASE_URL: new URL(await standin(contents)).origin });
  const settings = { security: { auth: { selectedType: 'gemini-api-key' } } };
  await mkdir(join(GEMINI.GEMINI_CLI_HOME, '.gemini'), { recursive: true });
  await writeFile(join(GEMINI.GEMINI_CLI_HOME, '.gemini/settings.json'), JSON.stringify(settings));
  await writeFile(
    join(project.config, 'agents/gemini.md'),
    agentFile('Gem', ['gemini', '--acp', '-m', 'gemini-2.5-flash'], GEMINI),
  );
  await project.up();
}, 600_000);

const written = (file: string) => readFileSync(join(project.root, file), 'utf8');

describe('OpenCode', () => {
  it.each([
    ['', ''],
    [', also with `kill -9` of the daemon while the approval waits', '-killed'],
  ])(
    'edits after an approval, hands over, and a colleague reviews the difference%s',
    async (_, kill) => {
      let client = await project.connect();
      const conversation = `real${kill}`;
      const file = `${conversation}.txt`;
      await client.post({ conversation, content: `please make ${file}`, publisher: 'alice' });
      await followUntil(client, conversation, (log) => ofType(log, 'approval-requested').length > 0);
      if (kill) client = await killDaemon(project);
      const entries = await finishThread(client, conversation);
      expect(threadFaults(entries)).toEqual([]);
      expect(written(file)).toBe('hello');
    },
    120_000,
  );
});

describe.each([
  ['codex', 'permit_execute'],
  ['gemini', 'permit_edit'],
])('the agent %s', (agent, tool) => {
  it('asks, writes a file once after the approval, and reports it', async () => {
    const client = await project.connect();
    const file = `${agent}.txt`;
    const content = `please make ${file}`;
    await client.post({ conversation: agent, content, to: [agent], publisher: 'alice' });
    await followUntil(client, agent, (log) => ofType(log, 'turn-ended').length > 0); // it waits, or has failed
    const { approvals } = await client.request('approvals', { conversation: agent });
    expect(approvals).toMatchObject([{ tool, arguments: expect.stringContaining('hello') }]);
    const approvalId = approvals[0]?.approvalId ?? '';
    await client.request('answer', { approvalId, answer: 'approve', publisher: 'rita' });
    const entries = await followUntil(client, agent, (log) => ofType(log, 'turn-ended').length > 1);
    expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
    expect(ofType(entries, 'message').at(-1)?.reported).toMatchObject([{ status: 'completed' }]);
    expect(written(file)).toBe('hello');
  }, 120_000);
});
