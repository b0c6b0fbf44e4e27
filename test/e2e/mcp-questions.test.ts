import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type FakeHandler, startFakeProvider } from '../support/fake-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { callsOf, checkLog, finished, followUntil, ofType } from '../support/log.ts';
import { openProject, providerSettings } from '../support/project.ts';

/** Questions that an MCP server asks during a call, in a daemon. */

const PROGRAM = fileURLToPath(new URL('../support/mcp-program.mjs', import.meta.url));
const TOOL = 'mcp__travel__book';
const model: FakeHandler = ({ json }) =>
  json.messages?.at(-1)?.role === 'tool'
    ? { text: 'Noted.' }
    : { toolCalls: [{ name: TOOL, arguments: '{}' }] };

async function open() {
  const provider = untilTestEnds(await startFakeProvider(model));
  const travel = { command: process.execPath, args: [PROGRAM] };
  const tools = { mcpServers: { travel }, policy: [{ tool: TOOL, allow: true }] };
  const agent = `---\nname: Pam\nphases: [chat]\ntools: [${TOOL}]\n---\nPERSONA`;
  const settings = providerSettings(provider.url, { tools });
  const project = untilTestEnds(await openProject({ settings, agents: { pm: agent } }));
  const daemon = await project.up();
  const client = await project.connect();
  await client.post({ conversation: 'demo', publisher: 'alice', content: 'go' });
  const entries = await followUntil(client, 'demo', (all) => ofType(all, 'approval-requested').length > 0);
  const { approvalId } = ofType(entries, 'approval-requested')[0] ?? expect.unreachable('nobody is asked');
  return { project, daemon, client, approvalId };
}

describe('a question of an MCP server', () => {
  it('is listed with who asks and what, answered by a person, and the server gets the answer', async () => {
    const { project, client, approvalId } = await open();
    const listed = await project.parley('approvals', 'demo');
    expect(listed.stdout).toMatch(
      /called mcp__travel__book: the server travel, a program outside of Parley, asks “Which day\?”/,
    );
    expect(listed.stdout).toContain(`approve ${approvalId} --arguments '{"day":"","seats":2}' --data`);
    const { conversations } = await client.request('conversations', {});
    expect(conversations[0]?.activity).toMatchObject([
      { status: 'running' },
      { status: 'waiting', for: 'approval', of: TOOL },
    ]);
    const wrong = await project.parley('approve', approvalId, '--arguments', '{"day":"monday","seats":0}');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('seats')]);
    const right = await project.parley('approve', approvalId, '--arguments', '{"day":"monday","seats":3}');
    expect([right.code, right.stderr]).toEqual([0, '']);
    const entries = await followUntil(client, 'demo', finished(1));
    expect(callsOf(entries)[0]?.results[0]?.content).toBe(
      '{"action":"accept","content":{"day":"monday","seats":3}}',
    );
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });

  it('a daemon that is killed while it waits closes it, and the outcome of the call is unknown (L12)', async () => {
    const { project, daemon, client, approvalId } = await open();
    await daemon.kill9();
    await project.up();
    const asked = await followUntil(client, 'demo', (all) => ofType(all, 'approval-requested').length > 1);
    expect(ofType(asked, 'approval-answered')).toMatchObject([{ approvalId, answer: 'expired' }]);
    const unknown = ofType(asked, 'approval-requested')[1];
    expect(unknown).toMatchObject({ mayHaveRun: true, tool: TOOL, arguments: '{}' });
    const late = await project.parley('approve', approvalId);
    expect(late.stderr).toContain('expired');
    await project.parley('resolve', unknown?.approvalId ?? '', '--failed');
    await followUntil(client, 'demo', finished(1));
    expect(checkLog(await project.logFile('demo'))).toEqual([]);
  });
});
