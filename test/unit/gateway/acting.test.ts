import { afterEach, describe, expect, it } from 'vitest';
import type { Entry } from '../../../src/conversation/index.ts';
import type { Gateway, Token } from '../../../src/gateway/index.ts';
import { posting } from '../../support/http.ts';
import { createFakeDaemon, type FakeDaemon, messageEntry, openGateway } from './support.ts';

/** A token of `http.people`: its actions are recorded under the name of its person. */
const ALICE: Token = { role: 'operate', secret: 'hers', publisher: 'office', name: 'Alice' };

const SHELL = { id: 'x', type: 'function', function: { name: 'shell', arguments: '{}' } };
const PLACE = { index: 2, position: 0 };
/** One post, and a call that waits for approval. */
const WAITING: readonly object[] = [
  { to: ['pm'] },
  { type: 'turn-started', agent: 'pm', trigger: [0] },
  { role: 'assistant', author: { kind: 'agent', id: 'pm', name: 'Pam' }, content: null, tool_calls: [SHELL] },
  { type: 'approval-requested', approvalId: 'a1', call: PLACE, risk: 'risky', mayHaveRun: false },
  { type: 'turn-ended', agent: 'pm', outcome: 'waiting' },
];

describe("the holder of a person's token", () => {
  let gateway: Gateway;
  let daemon: FakeDaemon;
  afterEach(() => gateway.close());

  async function open(log: readonly object[], after: readonly object[]) {
    daemon = createFakeDaemon();
    const entries: Entry[] = [];
    daemon.logs.set('demo', entries);
    const add = (more: object) => {
      const entry = { ...messageEntry(entries.length, 'x'), turnId: 't', ...more } as Entry;
      entries.push(entry);
      daemon.publish('demo', { kind: 'entries', entries: [entry] });
    };
    for (const more of log) add(more);
    const fromLogs = daemon.answer;
    daemon.answer = (request) => {
      if (request.endpoint === 'agents')
        return { ok: true, body: { agents: [{ slug: 'pm', name: 'Pam', description: '' }] } };
      if (['answer', 'stop'].includes(request.endpoint)) for (const more of after) add(more);
      return fromLogs(request);
    };
    ({ gateway } = await openGateway({ tokens: [ALICE] }, daemon));
  }

  const send = async (path: string, body: object) => {
    const accept = 'application/json, text/event-stream';
    const headers = { authorization: 'Bearer hers', accept, 'a2a-version': '1.0' };
    return (await fetch(`${gateway.url}${path}`, posting(body, headers))).text();
  };
  const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
  const tool = (name: string, given: object) => rpc('tools/call', { name, arguments: given });
  const ANSWERED = { type: 'approval-answered', approvalId: 'a1', call: PLACE, answer: 'approve' };
  const ENDED = { type: 'turn-ended', agent: 'pm', outcome: 'aborted' };
  const verdict = {
    messageId: 'm',
    taskId: 'demo.0',
    contextId: 'demo',
    role: 'ROLE_USER',
    parts: [{ text: 'approve' }],
  };
  const run = { threadId: 'demo', runId: 'r', messages: [], tools: [], context: [] };
  const resume = [{ interruptId: 'c2_0.a1@0', status: 'resolved', payload: { approved: true } }];
  const one = { conversation: 'demo' };

  it.each<[string, string, string, object, readonly object[]]>([
    ['answers', 'REST', '/api/approvals/a1', { answer: 'deny' }, []],
    ['stops', 'REST', '/api/conversations/demo/stop', {}, []],
    ['resumes', 'REST', '/api/conversations/demo/resume', {}, []],
    ['enters a phase', 'REST', '/api/conversations/demo/phase', { phase: 'plan' }, []],
    ['switches the mode', 'REST', '/api/conversations/demo/mode', { mode: 'chat' }, []],
    ['answers', 'MCP', '/mcp', tool('answer', { approvalId: 'a1', answer: 'deny' }), []],
    ['stops', 'MCP', '/mcp', tool('stop', one), []],
    ['resumes', 'MCP', '/mcp', tool('resume', one), []],
    ['answers', 'AG-UI', '/ag-ui/pm', { ...run, resume }, [ANSWERED, ENDED]],
    ['answers', 'A2A', '/a2a/pm', rpc('SendMessage', { message: verdict }), [ANSWERED, ENDED]],
  ])('a caller who %s over %s acts under the name of the person', async (_, __, path, body, after) => {
    await open(WAITING, after);
    await send(path, body);
    const done = daemon.asked.filter((request) => 'author' in (request.body as object));
    expect(done).toMatchObject([{ publisher: 'office', body: { publisher: 'office' } }]);
    expect(done[0]?.body).toMatchObject({ author: { name: 'Alice' } });
  });

  it('cancelling an A2A task stops the agent under the name of the person, and the agent continues after it', async () => {
    await open(WAITING.slice(0, 2), [{ type: 'agent-stopped', agent: 'pm' }, ENDED]);
    await send('/a2a/pm', rpc('CancelTask', { id: 'demo.0' }));
    const done = daemon.asked.filter(({ endpoint }) => ['stop', 'resume'].includes(endpoint));
    expect(done.map(({ body }) => (body as { author: unknown }).author)).toEqual([
      { name: 'Alice' },
      { name: 'Alice' },
    ]);
  });

  it('a stop request cannot carry the name of another person', async () => {
    await open([], []);
    const refused = JSON.parse(await send('/api/conversations/demo/stop', { author: { name: 'Bob' } }));
    expect(refused).toMatchObject({
      code: 'FORBIDDEN',
      hint: 'leave `publisher` and `author` out of the body, or use other credentials',
    });
    expect(daemon.asked).toEqual([]);
  });
});
