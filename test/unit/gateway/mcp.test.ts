import {
  Client as NextClient,
  StreamableHTTPClientTransport as NextTransport,
} from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach, describe, expect, it } from 'vitest';
import type { ApiAnswer, ApiRequest } from '../../../src/bus/port.ts';
import type { Entry } from '../../../src/conversation/index.ts';
import { conversationOf } from '../../../src/gateway/client-ids.ts';
import type { Gateway } from '../../../src/gateway/index.ts';
import { pageOf } from '../../../src/gateway/mcp/render.ts';
import { createFakeDaemon, messageEntry, openGateway } from './support.ts';

/** The protocol side of `/mcp`, with the official client. The tools themselves are tested end to end. */
describe('an MCP client at /mcp', () => {
  const open: Gateway[] = [];
  const clients: Client[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
    for (const gateway of open.splice(0)) await gateway.close();
  });

  async function join(answer?: (request: ApiRequest) => ApiAnswer) {
    const daemon = createFakeDaemon();
    if (answer) daemon.answer = answer;
    const { gateway, faults } = await openGateway({}, daemon);
    open.push(gateway);
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`)) as never);
    clients.push(client);
    return { client, daemon, faults, url: `${gateway.url}/mcp` };
  }

  const IDS = Array.from({ length: 250 }, (_, n) => `c-${String(n).padStart(3, '0')}`);
  const conversations = ({ endpoint, body }: ApiRequest): ApiAnswer => {
    if (endpoint !== 'conversations') throw new Error(`unexpected ${endpoint}`);
    const { after = '', limit = 100 } = body as { after?: string; limit?: number };
    const rest = IDS.filter((id) => id > after);
    const page = rest.slice(0, limit).map((id) => ({ id, title: null }));
    return {
      ok: true,
      body: { conversations: page, next: rest.length > limit ? (page.at(-1)?.id ?? null) : null },
    };
  };

  it('a client of revision 2026-07-28 gets the same tools and resources, without a handshake', async () => {
    const { client, url, faults } = await join(conversations);
    const options = { versionNegotiation: { mode: { pin: '2026-07-28' } } };
    const next = new NextClient({ name: 'test', version: '1' }, options);
    await next.connect(new NextTransport(new URL(url)));
    const named = (tools: readonly { readonly name: string }[]) => tools.map(({ name }) => name);
    expect(named((await next.listTools()).tools)).toEqual(named((await client.listTools()).tools));
    expect((await next.listResources()).resources.length).toBe(250);
    const none = next.readResource({ uri: 'nonsense' });
    await expect(none).rejects.toMatchObject({ code: -32602 });
    const unknown = next.callTool({ name: 'none', arguments: {} });
    await expect(unknown).rejects.toMatchObject({ code: -32602 });
    await next.close();
    expect(faults).toEqual([]);
  });

  it('an MCP client reads the list of resources to its end, page by page', async () => {
    const { client } = await join(conversations);
    const seen: string[] = [];
    let pages = 0;
    for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages += 1) {
      const page = await client.listResources(cursor === undefined ? {} : { cursor });
      seen.push(...page.resources.map(({ uri }) => uri));
      cursor = page.nextCursor;
      expect(IDS).not.toContain(cursor); // opaque: clients must not construct one
    }
    expect([seen, pages]).toEqual([IDS.map((id) => `parley://conversations/${id}`), 3]);
  });

  it('an MCP client is refused a cursor that was not issued by this server', async () => {
    const { client } = await join(conversations);
    for (const cursor of ['c-100', '', '%'])
      await expect(client.listResources({ cursor })).rejects.toMatchObject({ code: -32602 });
  });

  it.each([
    'parley://conversations/none',
    'parley://conversations/a%20b',
    'parley://conversations/',
    'parley://elsewhere/none',
    'file:///etc/passwd',
    'nonsense',
  ])('an MCP client gets an error for the unknown resource %s', async (uri) => {
    const { client, faults } = await join();
    await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32602, data: { uri } });
    expect(faults).toEqual([]);
  });

  it('an MCP client reads the template of the resources', async () => {
    const { client } = await join();
    expect((await client.listResourceTemplates()).resourceTemplates).toMatchObject([
      { uriTemplate: 'parley://conversations/{conversation}', mimeType: 'text/plain' },
      { uriTemplate: 'parley://conversations/{conversation}/blobs/{sha256}' },
    ]);
  });

  it('an MCP client gets the code of a refusal, and for a bug only that there was one', async () => {
    let message = 'the daemon stops';
    const { client, faults } = await join(() => {
      if (message === 'bug') throw new Error('a secret');
      return { ok: false, refusal: { code: 'STOPPING', message } };
    });
    await expect(client.listResources()).rejects.toThrow(/STOPPING: the daemon stops/);
    message = 'bug';
    const uri = 'parley://conversations/x';
    const failure = await client.readResource({ uri }).catch((error: Error) => error.message);
    expect(failure).toContain('the daemon failed');
    expect(failure).not.toContain('secret');
    expect(faults).toHaveLength(1);
  });

  it('an MCP client may name a conversation by an id of its own', async () => {
    const { client, daemon } = await join();
    const fromLogs = daemon.answer;
    daemon.answer = (request) =>
      request.endpoint === 'approvals' ? { ok: true, body: { approvals: [] } } : fromLogs(request);
    daemon.append(conversationOf('case 17'), 'Hello');
    const told = await client.callTool({ name: 'read', arguments: { conversation: 'case 17', from: 0 } });
    expect(told).toMatchObject({ structuredContent: { conversation: conversationOf('case 17'), length: 1 } });
  });

  it('an MCP client addresses agents by slug or name, as delegate does, also those hired in the conversation', async () => {
    const agents = [
      { slug: 'lead', name: 'Team Lead' },
      { slug: 'dev', name: 'Dev' },
    ];
    const hired = { name: 'Rita (hired)', dismissed: false };
    const posted: unknown[] = [];
    const { client } = await join(({ endpoint, body }) => {
      if (endpoint === 'agents') return { ok: true, body: { agents } };
      if (endpoint === 'conversation') {
        const isKnown = (body as { conversation: string }).conversation === 'demo';
        if (!isKnown) return { ok: false, refusal: { code: 'NOT_FOUND', message: 'none' } };
        return { ok: true, body: { agents: { 'rita-1': { status: 'idle', hired } } } };
      }
      posted.push((body as { to?: unknown }).to);
      return { ok: true, body: { conversation: 'demo', id: 'x', index: 0, duplicate: false, agents: [] } };
    });
    const post = (conversation: string, to: string[]) =>
      client.callTool({ name: 'post', arguments: { conversation, content: 'x', to } });
    await post('demo', ['team lead', '@DEV', 'rita-1', 'rita']);
    await post('new', ['Dev']);
    expect(posted).toEqual([['lead', 'dev', 'rita-1', 'rita-1'], ['dev']]);
    for (const stranger of ['Nobody Here', 'rita'])
      expect(await post('new', [stranger])).toMatchObject({
        isError: true,
        content: [{ text: expect.stringMatching(/^UNKNOWN_AGENT: .*known agents: lead, dev/s) }],
      });
    expect(posted).toHaveLength(2);
  });

  it('an MCP client may name a session, and learns if it has no right to', async () => {
    const { client, daemon } = await join(({ endpoint }) => {
      const posted = { conversation: 'demo', id: 'x', index: 0, duplicate: false, agents: ['dev'] };
      return { ok: true, body: endpoint === 'post' ? { ...posted, ignored: ['sessionId'] } : {} };
    });
    const given = { conversation: 'demo', content: 'x', sessionId: 's-1' };
    expect(await client.callTool({ name: 'post', arguments: given })).toMatchObject({
      structuredContent: { ignored: ['sessionId'] },
      content: [{ text: expect.stringContaining('sessionId has no effect') }],
    });
    expect(daemon.asked.find(({ endpoint }) => endpoint === 'post')?.body).toMatchObject(given);
  });

  it('an MCP client may give the schema of the answer', async () => {
    const { client, daemon } = await join(() => ({
      ok: true,
      body: { conversation: 'demo', id: 'x', index: 0, duplicate: false, agents: ['dev'] },
    }));
    const given = { conversation: 'demo', content: 'x', schema: { type: 'object', required: ['n'] } };
    await client.callTool({ name: 'post', arguments: given });
    expect(daemon.asked.find(({ endpoint }) => endpoint === 'post')?.body).toMatchObject(given);
  });

  it.each([
    ['the turns of other posts', [0], { n: 1 }],
    ['a turn that has the schema of a newer post', [0, 1], undefined],
  ])('the value of an MCP post is none of %s', async (_, trigger, value) => {
    const { client, daemon } = await join();
    const schema = { type: 'object', required: ['n'] };
    const ended = { type: 'turn-ended', outcome: 'completed' };
    const says = (id: string, said: object) => ({
      ...{ role: 'assistant', author: { kind: 'agent', id, name: id }, turnId: id, value: said },
    });
    const more = [
      { to: ['dev'], schema },
      { to: ['dev', 'lead'], schema: { type: 'object' } },
      { type: 'turn-started', turnId: 'dev', agent: 'dev', trigger },
      { type: 'turn-started', turnId: 'lead', agent: 'lead', trigger: [1] },
      says('dev', { n: 1 }),
      { turnId: 'dev', agent: 'dev', ...ended },
      says('lead', { other: true }),
      { turnId: 'lead', agent: 'lead', ...ended },
    ];
    daemon.logs.set(
      'demo',
      more.map((fields, at) => ({ ...messageEntry(at, 'x'), ...fields }) as Entry),
    );
    const fromLogs = daemon.answer;
    daemon.answer = (request) => {
      if (request.endpoint === 'approvals') return { ok: true, body: { approvals: [] } };
      if (request.endpoint !== 'post') return fromLogs(request);
      return {
        ok: true,
        body: { conversation: 'demo', id: 'x', index: 0, duplicate: true, agents: ['dev'] },
      };
    };
    const given = { conversation: 'demo', content: 'x', schema, waitSeconds: 20 };
    const { structuredContent } = await client.callTool({ name: 'post', arguments: given });
    expect(structuredContent).toMatchObject({ status: 'done' });
    expect((structuredContent as { value?: unknown }).value).toEqual(value);
  });

  it('the MCP server declares no notifications, since it has no stream for them', async () => {
    const { client } = await join();
    const { tools, resources } = client.getServerCapabilities() ?? {};
    expect([tools?.listChanged ?? false, resources?.listChanged ?? false]).toEqual([false, false]);
    expect(resources).toBeDefined();
  });

  it('a page tells what happened in the words of the command line, without bookkeeping', () => {
    const author = { kind: 'system', id: 'parley', name: 'Parley' };
    const entries = [
      { type: 'mode-entered', from: 'talk', to: 'build', by: 'alice' },
      { type: 'claim', daemon: 'one', epoch: 1 },
      { type: 'turn-ended', turnId: 't', agent: 'pm', outcome: 'completed' },
      { type: 'run-started', runId: 'r', workflowId: 'release' },
      { type: 'colour-set' },
    ].map((entry, index) => ({ index, author, ...entry }));
    expect(pageOf({ conversation: 'demo', length: 5 }, entries as never, 5).text.split('\n')).toEqual([
      '[0] mode talk → build by alice',
      '[3] run r of release started',
      '[4] colour-set: this version does not know that kind of entry',
    ]);
  });
});
