import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type FakeHandler, startFakeProvider } from '../support/fake-provider.ts';
import { untilTestEnds } from '../support/lifetime.ts';
import { callsOf, checkLog, finished, followUntil, ofType } from '../support/log.ts';
import { openProject, providerSettings } from '../support/project.ts';
import { hasLongTests } from '../support/runs.ts';

/** Questions that an MCP server asks during a call, in a daemon. */

const PROGRAM = fileURLToPath(new URL('../support/mcp-program.mjs', import.meta.url));
const TOOL = 'mcp__travel__book';
const calling =
  (name: string): FakeHandler =>
  ({ json }) =>
    json.messages?.at(-1)?.role === 'tool' ? { text: 'Noted.' } : { toolCalls: [{ name, arguments: '{}' }] };

async function open(tool = TOOL) {
  const provider = untilTestEnds(await startFakeProvider(calling(tool)));
  const travel = { command: process.execPath, args: [PROGRAM] };
  const tools = { mcpServers: { travel }, policy: [{ tool, allow: true }] };
  const agent = `---\nname: Pam\nphases: [chat]\ntools: [${tool}]\n---\nPERSONA`;
  const settings = providerSettings(provider.url, { tools });
  const project = untilTestEnds(await openProject({ settings, agents: { pm: agent } }));
  const daemon = await project.up('--http', '127.0.0.1:0', '--http-token', 'none');
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
      { status: 'waiting', for: 'approval', of: TOOL, asks: 'travel' },
    ]);
    expect((await project.parley('status')).stdout).toContain('an answer to travel');
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

  it('with many fields has a line for each in the command line, and `say --wait` ends with it', async () => {
    const { project, approvalId } = await open('mcp__travel__survey');
    const listed = await project.parley('approvals', 'demo');
    expect(listed.stdout).toContain(
      [
        'asks “Who flies?”:',
        '  name (Name, as in the passport, required)',
        '  seat (one of "w" for Window, "a" for Aisle)',
        '  meal (one of "v" for Vegetarian, "no")',
        '  extras (any of "bag" for A bag\\n  fake: line)',
        'The answer goes to that server',
      ].join('\n'),
    );
    await project.parley('deny', approvalId);
    const said = await project.parley('say', 'second', 'go', '--wait');
    expect([said.code, said.stderr]).toEqual([
      0,
      expect.stringContaining('asks “Who flies?”:\n  name (Name'),
    ]);
  });

  it('is shown to callers of every protocol as an approval is, which answer it where they may', async () => {
    const { project, daemon, client, approvalId } = await open();
    const answered = (id: string) => client.request('answer', { approvalId: id, answer: 'deny' });
    await answered(approvalId); // a server asks one question at a time
    const send = async (path: string, body: object, headers: Record<string, string> = {}) => {
      const answer = await fetch(daemon.ready.http + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
      return answer.text();
    };
    const said = { model: 'pm', messages: [{ role: 'user', content: 'go' }] };
    const chat = await send('/v1/chat/completions', said);
    expect(chat).toMatch(/Waiting for approval .*asks “Which day\?”.*parley approve \S+ --arguments JSON/);
    const [, waiting = ''] = /parley deny ([\w.-]+)\)/.exec(chat) ?? [];
    await answered(waiting);
    const run = { threadId: 'by-ag-ui', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'go' }] };
    const interrupted = await send('/ag-ui/pm', run);
    const [, id = ''] = /"interrupts":\[\{"id":"([^"]+)"/.exec(interrupted) ?? [];
    expect(interrupted).toContain('"arguments":{"type":"object","properties":{"day"');
    const payload = { approved: true, arguments: { day: 'friday', seats: 1 } };
    const resumed = await send('/ag-ui/pm', {
      ...{ ...run, runId: 's', resume: [{ interruptId: id, status: 'resolved', payload }] },
    });
    expect(resumed).toContain('\\"content\\":{\\"day\\":\\"friday\\",\\"seats\\":1}');
    expect(resumed).toContain('"outcome":{"type":"success"}');
    const a2a = (message: object) =>
      send(
        '/a2a/pm',
        {
          jsonrpc: '2.0',
          id: 1,
          method: 'SendMessage',
          params: { message: { role: 'ROLE_USER', ...message } },
        },
        { 'a2a-version': '1.0' },
      );
    const asking = await a2a({ messageId: 'm', contextId: 'by-a2a', parts: [{ text: 'go' }] });
    expect(asking).toMatch(/TASK_STATE_INPUT_REQUIRED.*asks “Which day\?”.*"schema":\{"type":"object"/);
    const [, taskId] = /"task":\{"id":"([^"]+)"/.exec(asking) ?? [];
    const data = { approved: true, arguments: { day: 'sunday' } };
    const done = await a2a({ messageId: 'n', taskId, parts: [{ data }] });
    expect(done).toMatch(/TASK_STATE_COMPLETED.*Noted\./);
    for (const name of ['by-ag-ui', 'by-a2a']) expect(checkLog(await project.logFile(name))).toEqual([]);
  });

  it.runIf(hasLongTests)(
    'a daemon that is killed while it waits closes it, and the outcome of the call is unknown (L12)',
    async () => {
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
    },
  );
});
