import { fileURLToPath } from 'node:url';
import { connect as connectToNats } from 'nats';
import { describe, expect, it } from 'vitest';
import type { Entry } from '../../src/client/index.ts';
import type { FakeHandler, FakeReply } from '../support/fake-provider.ts';
import { callsOf, checkLog, finished, followUntil } from '../support/log.ts';
import { sharedProject } from '../support/project.ts';

/** Content larger than the server carries, many tools at once, and what other users see of tools. */

const PROGRAM = fileURLToPath(new URL('../support/mcp-program.mjs', import.meta.url));
const HUGE = 'w'.repeat(2 * 1024 * 1024);
const settings = {
  tools: {
    mcpServers: { it: { command: process.execPath, args: [PROGRAM], trustReadOnlyHint: true } },
    policy: [{ tool: 'shell', allow: false }],
  },
};
const agents = {
  pm: '---\nname: Pam\nphases: [chat]\ntools: [delegate, fs_write, fs_list, shell, mcp__it__pid, mcp__it__picture]\n---\nPERSONA OF PAM',
  dev: '---\nname: Dev\nphases: [execute]\ntools: []\n---\nPERSONA OF DEV',
};

const call = (name: string, given: object) => ({ name, arguments: JSON.stringify(given) });
const REPLIES: Readonly<Record<string, FakeReply>> = {
  'long words': { text: HUGE },
  'write it': { toolCalls: [call('fs_write', { path: '@project/huge', content: HUGE })] },
  'ask dev': { toolCalls: [call('delegate', { to: 'dev', request: 'long words' })] },
  'a picture': { toolCalls: [call('mcp__it__picture', {})] },
  'a forbidden one': { toolCalls: [call('shell', { command: 'true' })] },
  many: {
    toolCalls: Array.from({ length: 60 }, (_, n) =>
      n % 2 ? call('mcp__it__pid', {}) : call('fs_list', { path: '@project' }),
    ),
  },
};

const model: FakeHandler = ({ json }) => {
  const last = json.messages?.at(-1)?.content ?? '';
  return Object.entries(REPLIES).find(([words]) => last.endsWith(words))?.[1] ?? { text: 'Noted.' };
};
const project = sharedProject({ model, settings, agents });
const { nats, provider, daemon, client } = project;

/** Posts and waits until no agent works on it any more. */
async function say(conversation: string, content: string, turns = 1): Promise<Entry[]> {
  await client.post({ conversation, content, publisher: 'alice' });
  const entries = await followUntil(client, conversation, finished(turns));
  expect(checkLog(await project.logFile(conversation))).toEqual([]);
  return entries;
}
const largest = (entries: readonly Entry[]) =>
  Math.max(...entries.map((entry) => Buffer.byteLength(JSON.stringify(entry))));

describe('content that exceeds the message size of the server', () => {
  it('a call with large arguments is not run, and the agent gets an error', async () => {
    const entries = await say('arguments', 'write it');
    const [written] = callsOf(entries);
    expect(written?.results[0]?.content).toContain('ARGUMENTS_TOO_LARGE');
    expect(largest(entries)).toBeLessThan(10_000);
    expect(entries.at(-1)).toMatchObject({ type: 'turn-ended', outcome: 'completed' });
  });

  it('a large answer to a delegation reaches the asking agent as a preview', async () => {
    const entries = await say('delegated', 'ask dev', 2);
    const [asked] = callsOf(entries);
    expect(asked?.results[0]?.content).toMatch(/^w{500}\n\[Full output: @state/);
    expect(largest(entries)).toBeLessThan(10_000);
  });
});

describe('tools in a daemon', () => {
  it('sixty concurrent calls all end without a warning, and are on the audit subject', async () => {
    const program = await connectToNats({ servers: nats.url });
    project.defer(() => program.close());
    const seen: { type: string; tool: string }[] = [];
    program.subscribe('parley.audit.many', {
      callback: (_, message) => seen.push(message.json()),
    });
    await program.flush();
    const calls = callsOf(await say('many', 'many'));
    expect(calls.flatMap(({ results }) => results)).toHaveLength(60);
    await expect.poll(() => seen.length).toBe(180);
    for (const type of ['ToolCallRequested', 'ToolCallStarted', 'ToolCallCompleted']) {
      expect(seen.filter((record) => record.type === type)).toHaveLength(60);
    }
    expect(daemon.stderr()).not.toMatch(/MaxListeners|Warning/);
  });

  it('a tool that the policy forbids is not offered, and not available when it is called', async () => {
    const entries = await say('forbidden', 'a forbidden one');
    expect(callsOf(entries)[0]?.results[0]?.content).toContain('TOOL_NOT_AVAILABLE');
    const sent = provider.requests.at(-1)?.json as { tools?: { function: { name: string } }[] };
    expect(sent.tools?.map((tool) => tool.function.name)).not.toContain('shell');
  });

  it('doctor shows the MCP servers, and explain the tools that the agent has and lacks', async () => {
    const doctor = await project.parley('doctor', '--config', project.config);
    expect(doctor.stdout).toMatch(
      /^ok {4}MCP server it \(program\): connected with \d+ tools: .*mcp__it__pid/m,
    );
    const explained = async (...args: string[]) =>
      JSON.parse((await project.parley('explain', 'forbidden', '--agent', 'pm', '--json', ...args)).stdout);
    const offline = await explained('--config', project.config);
    expect(offline.report).toMatchObject({
      tools: ['delegate', 'fs_list', 'fs_write'],
      tools_missing: ['mcp__it__picture', 'mcp__it__pid'],
      tools_forbidden: ['shell'],
      note: expect.stringContaining('MCP servers were not asked'),
    });
    const online = await client.request('view', { conversation: 'forbidden', agent: 'pm' });
    expect(online.report).toMatchObject({ tools_missing: [], tools_forbidden: ['shell'] });
    expect(online.report.note).toBeUndefined();
  });
});
