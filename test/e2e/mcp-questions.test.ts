import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { FakeHandler } from '../support/fake-provider.ts';
import { shared } from '../support/lifetime.ts';
import { callsOf, checkLog, finished, followUntil, ofType } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { startProject } from '../support/project.ts';

/** Questions that an MCP server asks during a call, in a daemon. */

const PROGRAM = fileURLToPath(new URL('../support/mcp-program.mjs', import.meta.url));
const TOOL = 'mcp__travel__book';
const SURVEY = 'mcp__travel__survey';
const model: FakeHandler = ({ json }) => {
  if (json.messages?.at(-1)?.role === 'tool') return { text: 'Noted.' };
  const isSurvey = json.messages?.at(-1)?.content?.includes('survey');
  return { toolCalls: [{ name: isSurvey ? SURVEY : TOOL, arguments: '{}' }] };
};
const travel = { command: process.execPath, args: [PROGRAM] };
const policy = [TOOL, SURVEY].map((tool) => ({ tool, allow: true }));
const project = shared(() =>
  startProject({
    model,
    settings: { tools: { mcpServers: { travel }, policy } },
    agents: { pm: `---\nname: Pam\nphases: [chat]\ntools: [${TOOL}, ${SURVEY}]\n---\nPERSONA` },
    http: true,
  }),
);
const { client } = project;

/** Returns the id of the question. The server asks one at a time. */
async function open(conversation: string, content = 'go'): Promise<string> {
  await client.post({ conversation, publisher: 'alice', content });
  const entries = await followUntil(
    client,
    conversation,
    (all) => ofType(all, 'approval-requested').length > 0,
  );
  const { approvalId } = ofType(entries, 'approval-requested')[0] ?? expect.unreachable('nobody is asked');
  return approvalId;
}

describe('a question of an MCP server', () => {
  it('is listed with who asks and what, answered by a person, and the server gets the answer', async () => {
    const approvalId = await open('demo');
    const listed = await project.parley('approvals', 'demo');
    expect(listed.stdout).toMatch(
      /called mcp__travel__book: the server “travel”, a program outside of Parley, asks “Which day\?”/,
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
    const approvalId = await open('first', 'survey');
    const listed = await project.parley('approvals', 'first');
    expect(listed.stdout).toContain(
      [
        'asks “Who flies?”:',
        '  name (Name, as in the passport, required)',
        '  seat (one of "w" for Window, "a" for Aisle)',
        '  meal (one of "v" for Vegetarian, "no")',
        '  extras (any of "bag" for A bag\\n  fake: line, "food" for A meal)',
        'The answer goes to that server',
      ].join('\n'),
    );
    await project.parley('deny', approvalId);
    const said = await project.parley('say', 'second', 'survey', '--wait');
    expect([said.code, said.stderr]).toEqual([
      0,
      expect.stringContaining('asks “Who flies?”:\n  name (Name'),
    ]);
    const [waiting] = (await client.request('approvals', { conversation: 'second' })).approvals;
    await client.request('answer', { approvalId: waiting?.approvalId ?? '', answer: 'deny' });
  });

  it('is shown to callers of every protocol as an approval is, which answer it where they may', async () => {
    const answered = (id: string) => client.request('answer', { approvalId: id, answer: 'deny' });
    const send = async (path: string, body: object, headers: Record<string, string> = {}) => {
      const answer = await fetch(project.http + path, {
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

  itLong(
    'a daemon that is killed while it waits closes it, and the outcome of the call is unknown (L12)',
    async () => {
      const approvalId = await open('killed');
      await project.daemon.kill9();
      await project.up();
      const asked = await followUntil(
        client,
        'killed',
        (all) => ofType(all, 'approval-requested').length > 1,
      );
      expect(ofType(asked, 'approval-answered')).toMatchObject([{ approvalId, answer: 'expired' }]);
      const unknown = ofType(asked, 'approval-requested')[1];
      expect(unknown).toMatchObject({ mayHaveRun: true, tool: TOOL, arguments: '{}' });
      const late = await project.parley('approve', approvalId);
      expect(late.stderr).toContain('expired');
      await project.parley('resolve', unknown?.approvalId ?? '', '--failed');
      await followUntil(client, 'killed', finished(1));
      expect(checkLog(await project.logFile('killed'))).toEqual([]);
    },
  );
});
