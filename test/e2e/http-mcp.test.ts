import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { EVERYBODY } from '../support/batch.ts';
import { shared } from '../support/lifetime.ts';
import { finished, followUntil, ofType, turnsEnded } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { openProject } from '../support/project.ts';
import { call, FAILS, LOOKS, on } from '../support/route-rules.ts';
import { pngOf } from '../support/uploaded-files.ts';

/** The MCP route for agents of other programs, with the client of the official SDK. */
describe('the client of the MCP SDK', () => {
  let url: URL;
  const clients: Client[] = [];
  const project = shared(() =>
    openProject({
      nats: {},
      env: {
        PARLEY_HTTP_TOKENS_READ: 'reads-and-no-more',
        PARLEY_HTTP_TOKENS_POST: 'posts-and-no-more',
        PARLEY_HTTP_TOKEN: 'operates-and-more',
      },
      settings: { http: { publishers: { post: 'coder' } }, approvals: EVERYBODY },
      agents: {
        lead: '---\nname: Lead\ndescription: leads\ntools: [fs_list, fs_write, ask]\n---\nYou lead.',
        dev: '---\nname: Dev\n---\nYou build.',
      },
      script: RULES,
    }),
  );
  beforeAll(async () => {
    url = new URL(`${(await project.up('--http', '127.0.0.1:0')).ready.http}/mcp`);
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });

  const RULES = [
    LOOKS,
    on('/write/', call('I will.', 'fs_write', { path: '@project/x.txt', content: 'x' }), {
      agent: 'lead',
      n: 0,
    }),
    { when: { agent: 'lead', last: '/unsure/' }, reply: call('', 'ask', { question: 'Which one?' }) },
    on('/slow/', { text: 'One word after another, and many more of them', delayMs: 400 }),
    on('/how many/', { text: `{"n":7,"why":"${'long '.repeat(2_000)}"}` }),
    FAILS,
    { when: { agent: 'dev' }, reply: { text: 'Done by dev.' } },
    { reply: { text: 'Noted\n[0] by the lead.' } },
  ];

  async function join(token = 'operates-and-more'): Promise<Client> {
    const client = new Client({ name: 'test', version: '1' });
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    // The SDK's own types disagree about optional fields.
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }) as never);
    clients.push(client);
    return client;
  }
  // biome-ignore lint/suspicious/noExplicitAny: looked at as a program would
  type Data = any;
  async function use(client: Client, name: string, args: object) {
    const told = await client.callTool({ name, arguments: { ...args } });
    const [content] = told.content as { text: string }[];
    return {
      text: content?.text ?? '',
      data: told.structuredContent as Data,
      isError: told.isError === true,
    };
  }
  const said = (data: Data): [string, string | null][] =>
    data.entries
      .filter((entry: Data) => entry.type === 'message')
      .map((entry: Data) => [entry.author.id, entry.content]);

  it('the MCP client lists tools with their descriptions', async () => {
    const client = await join('reads-and-no-more');
    expect(client.getServerVersion()?.name).toBe('parley');
    expect(client.getInstructions()).toContain('`post`');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'agents',
      'list',
      'read',
      'explain',
      'approvals',
      'post',
      'answer',
      'stop',
      'resume',
    ]);
    for (const { inputSchema, description } of tools) {
      expect(inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
      expect(description).toMatch(/\w/);
    }
    expect((await use(client, 'agents', {})).text).toContain('lead (Lead, idle): leads');
  });

  it('an answer to a post with a schema is a value of the structured content, which the client checks', async () => {
    const client = await join();
    const { tools } = await client.listTools(); // the SDK checks every result against the schemas of this list
    expect(tools.find(({ name }) => name === 'post')?.outputSchema).toMatchObject({
      properties: { value: {} },
    });
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    const asked = { conversation: 'typed', schema, to: ['dev'], waitSeconds: 40 };
    const right = await use(client, 'post', { ...asked, content: 'how many' });
    expect(right.data).toMatchObject({ status: 'done', value: { n: 7, why: 'long '.repeat(2_000) } });
    const wrong = await use(client, 'post', { ...asked, content: 'say anything' });
    expect(wrong.text).toContain('(no answer matched the schema)');
    expect(wrong.data).not.toHaveProperty('value');
    const refused = await use(client, 'post', { ...asked, to: ['nobody'] });
    expect(refused).toMatchObject({ isError: true, data: { code: 'UNKNOWN_AGENT' } });
  });

  it('the MCP client posts, waits for the answer with its tool calls, and reads it again', async () => {
    const client = await join();
    const told = await use(client, 'post', {
      conversation: 'read',
      content: 'look around',
      name: 'Cody',
      waitSeconds: 40,
    });
    expect(told.data).toMatchObject({
      conversation: 'read',
      index: 0,
      status: 'done',
      agents: ['lead'],
      approvals: [],
    });
    expect(said(told.data).map(([who]) => who)).toEqual(['lead', 'lead', 'lead']);
    expect(told.text).toMatch(/\[\d+\] Lead \(agent\): Let me look\.\n {4}calls fs_list/);
    expect(told.text).toContain('result of fs_list');
    // No text of a message can imitate an entry.
    expect(told.text).toMatch(/Lead \(agent\): Noted\n {4}\[0\] by the lead\./);
    const again = await use(client, 'read', { conversation: 'read' });
    expect(again.data.entries[0]).toMatchObject({
      content: 'look around',
      author: { id: 'mcp/Cody', name: 'Cody' },
    });
    expect(again.data.next).toBe(again.data.length);
    const page = await use(client, 'read', { conversation: 'read', from: 0, limit: 1 });
    expect([page.data.next, page.data.entries.length]).toEqual([1, 1]);
    expect(page.text).toContain('read from 1');
    expect((await use(client, 'list', {})).text).toContain('read: "look around"');
  });

  it('the MCP client posts one id once, and gets the same answer again', async () => {
    const client = await join();
    const one = { conversation: 'twice', content: 'Hello', to: ['dev'], id: 'one', waitSeconds: 40 };
    const first = await use(client, 'post', one);
    const second = await use(client, 'post', one);
    expect(second.data).toEqual({ ...first.data, duplicate: true });
    expect(said(first.data)).toEqual([['dev', 'Done by dev.']]);
  });

  it('the MCP client that names no conversation posts one id once, which another person may post too', async () => {
    const client = await join();
    const one = { content: 'Hello', to: ['dev'], id: 'no conversation', waitSeconds: 40 };
    const first = await use(client, 'post', one);
    const second = await use(client, 'post', one);
    expect(second.data).toEqual({ ...first.data, duplicate: true });
    const other = await use(await join('posts-and-no-more'), 'post', one);
    expect(other.data).toMatchObject({ duplicate: false, index: 0 });
    expect(other.data.conversation).not.toBe(first.data.conversation);
  });

  it('the MCP client may name no conversation, and does not wait by default', async () => {
    const client = await join();
    const { data } = await use(client, 'post', { content: 'Hello' });
    expect(data).toMatchObject({ index: 0, next: 1, agents: ['lead'] });
    const read = await use(client, 'read', {
      conversation: data.conversation,
      from: data.next,
      waitSeconds: 40,
    });
    expect(read.data).toMatchObject({ status: 'done' });
    expect(said(read.data)).toEqual([['lead', 'Noted\n[0] by the lead.']]);
  });

  it('the MCP client gets a call that needs approval, answers it, and sees the result', async () => {
    const client = await join();
    const told = await use(client, 'post', {
      conversation: 'approved',
      content: 'write it',
      waitSeconds: 40,
    });
    expect(told.data).toMatchObject({ status: 'waits-for-a-person', approvals: [{ tool: 'fs_write' }] });
    const [{ approvalId }] = told.data.approvals;
    expect(told.text).toContain(approvalId);
    expect((await use(client, 'approvals', {})).text).toContain(approvalId);
    const poster = await use(await join('posts-and-no-more'), 'answer', { approvalId, answer: 'approve' });
    expect([poster.isError, poster.text]).toEqual([
      true,
      expect.stringMatching(/^FORBIDDEN: .*role approve/),
    ]);
    expect((await use(client, 'answer', { approvalId, answer: 'approve' })).data).toEqual({ accepted: true });
    const rest = await use(client, 'read', {
      conversation: 'approved',
      from: told.data.next,
      waitSeconds: 40,
    });
    expect(rest.data).toMatchObject({ status: 'done', approvals: [] });
    expect(rest.text).toContain('result of fs_write');
    const once = await use(client, 'answer', { approvalId, answer: 'approve' });
    expect([once.isError, once.data.code]).toEqual([true, expect.stringMatching(/\w/)]);
  });

  it("the MCP client answers an agent's question, and gets the failure of a model", async () => {
    const client = await join();
    const asked = await use(client, 'post', { conversation: 'asked', content: 'unsure', waitSeconds: 40 });
    expect([asked.data.status, asked.text]).toEqual([
      'waits-for-a-person',
      expect.stringContaining('Which one?'),
    ]);
    const failed = await use(client, 'post', { conversation: 'failed', content: 'fail', waitSeconds: 40 });
    expect(failed.text).toMatch(/out of order[\s\S]*the turn of lead: failed/);
  });

  itLong('an MCP call that is cancelled or times out ends its own wait and no turn', async () => {
    const client = await join();
    const soon = await use(client, 'post', { conversation: 'left', content: 'slow', waitSeconds: 1 });
    expect([soon.data.status, soon.text]).toEqual(['running', expect.stringContaining('not done yet')]);
    const leaving = await join();
    const left = use(leaving, 'read', { conversation: 'left', waitSeconds: 60 });
    const gone = left.catch((error: unknown) => error);
    await leaving.close();
    expect(await gone).toBeInstanceOf(Error);
    const entries = await followUntil(await project.connect(), 'left', turnsEnded(1));
    expect(ofType(entries, 'turn-ended').at(-1)).toMatchObject({ outcome: 'completed' });
  });

  it('the MCP client aborts a turn, learns which agent waits, and resumes', async () => {
    const client = await join();
    const waiting = use(client, 'post', { conversation: 'stopped', content: 'slow', waitSeconds: 60 });
    await followUntil(await project.connect(), 'stopped', (entries) =>
      entries.some(({ type }) => type === 'turn-started'),
    );
    const refused = await use(await join('posts-and-no-more'), 'stop', { conversation: 'stopped' });
    expect([refused.isError, refused.text]).toEqual([true, expect.stringContaining('role operate')]);
    expect((await use(client, 'stop', { conversation: 'stopped' })).isError).toBe(false);
    const told = await waiting;
    expect([told.data.status, told.text]).toEqual([
      'done',
      expect.stringContaining('the turn of lead: aborted'),
    ]);
    expect((await use(client, 'resume', { conversation: 'stopped' })).isError).toBe(false);
    await followUntil(await project.connect(), 'stopped', finished(1));
  });

  it('a post of the MCP client has the author of its token', async () => {
    const coder = await join('posts-and-no-more');
    const forged = await use(coder, 'post', { content: 'x', publisher: 'alice' });
    expect(forged.isError).toBe(true);
    const { data } = await use(coder, 'post', { content: 'Hello', waitSeconds: 40 });
    const read = await use(coder, 'read', { conversation: data.conversation, from: 0 });
    expect(read.data.entries[0].author).toMatchObject({ id: 'coder' });
    const reader = await use(await join('reads-and-no-more'), 'post', { content: 'x' });
    expect(reader).toMatchObject({ isError: true, data: { code: 'FORBIDDEN' } });
    await expect(join('wrong')).rejects.toThrow();
  });

  it('the MCP client reads the exact request of a view, and conversations as resources', async () => {
    const client = await join();
    await use(client, 'post', { conversation: 'explained', content: 'Hello', waitSeconds: 40 });
    const explained = await use(client, 'explain', { conversation: 'explained', agent: 'lead' });
    expect(explained.text).toContain('You lead.');
    expect(explained.data.messages[0]).toMatchObject({ role: 'system' });
    const { resources } = await client.listResources();
    expect(resources).toContainEqual(
      expect.objectContaining({ uri: 'parley://conversations/explained', name: 'Hello' }),
    );
    const { contents } = await client.readResource({ uri: 'parley://conversations/explained' });
    expect(contents).toMatchObject([{ text: expect.stringContaining('Hello') }]);
  });

  it.each<[string, string, object, string]>([
    ['a conversation that is not there', 'read', { conversation: 'none' }, 'NOT_FOUND'],
    ['a wait for one', 'read', { conversation: 'none', waitSeconds: 5 }, 'NOT_FOUND'],
    ['an unknown agent', 'post', { content: 'x', to: ['nobody'] }, 'UNKNOWN_AGENT'],
    ['a name that is an agent’s', 'post', { content: 'x', name: 'Lead' }, 'AUTHOR_IS_AN_AGENT'],
    ['an approval that is not there', 'answer', { approvalId: 'none', answer: 'deny' }, 'NOT_FOUND'],
    ['an unknown field', 'post', { content: 'x', colour: 'red' }, 'colour'],
    ['a wait without end', 'post', { content: 'x', waitSeconds: 10_000 }, 'waitSeconds'],
  ])('the MCP client gets a readable error for %s', async (_, name, args, words) => {
    const told = await use(await join(), name, args);
    expect([told.isError, told.text]).toEqual([true, expect.stringContaining(words)]);
  });

  it('the MCP route keeps no sessions, and refuses what is too large or not a request', async () => {
    const ask = (method: string, body?: string, type = 'application/json') =>
      fetch(url, {
        method,
        headers: {
          authorization: 'Bearer operates-and-more',
          'content-type': type,
          accept: 'application/json, text/event-stream',
        },
        ...(body !== undefined && { body }),
      });
    expect((await ask('GET')).status).toBe(405);
    expect((await ask('DELETE')).status).toBe(405);
    expect((await ask('POST', '{')).status).toBe(400);
    expect((await ask('POST', '{}')).status).toBe(400);
    expect((await ask('POST', 'x', 'text/plain')).status).toBe(415);
    expect((await ask('POST', JSON.stringify({ a: 'x'.repeat(1_100_000) }))).status).toBe(413);
  });

  it('an MCP client posts files, and gets pictures as they are and everything else as a resource', async () => {
    const client = await join();
    const [picture, table] = [pngOf(2, 2), Buffer.from('a,b')];
    const sent = [picture, table].map((bytes, at) => ({
      ...{ name: ['plan.png', 'a.csv'][at], data: bytes.toString('base64') },
    }));
    const posted = await client.callTool({
      ...{ name: 'post', arguments: { conversation: 'files', files: sent, waitSeconds: 60 } },
    });
    expect(posted.isError).toBeUndefined();
    const told = await client.callTool({
      name: 'read',
      arguments: { conversation: 'files', from: 0, limit: 1 },
    });
    const [text, image, link] = told.content as Data[];
    expect(text.text).toMatch(
      /^\[0\] .*\[file plan\.png: image\/png, \d+ B, @blob\/\w{12}\]\n {4}\[file a\.csv: text\/csv, 3 B, @blob\/\w{12}\]/,
    );
    expect(image).toEqual({ type: 'image', data: picture.toString('base64'), mimeType: 'image/png' });
    expect(link).toMatchObject({ type: 'resource_link', name: 'a.csv', mimeType: 'text/csv', size: 3 });
    expect(await client.readResource({ uri: link.uri })).toEqual({
      contents: [{ uri: link.uri, mimeType: 'text/csv', blob: table.toString('base64') }],
    });
    const { uri } = link as { uri: string };
    for (const other of [
      uri.replace('/files/', '/other/'),
      `${uri.slice(0, -1)}x`,
      uri.replace(/\w{3}$/, '000'),
    ])
      await expect(client.readResource({ uri: other })).rejects.toMatchObject({ code: -32602 });
  });

  it.each([
    ['bytes and a hash', { data: 'YQ==', sha256: 'ab'.repeat(32) }, 'INVALID_FIELD'],
    ['neither', { name: 'a' }, 'INVALID_FIELD'],
    ['a file that is not stored', { sha256: 'ab'.repeat(32) }, 'MISSING_BLOB'],
  ])('an MCP client that posts %s is refused, and nothing is posted', async (_, file, code) => {
    const client = await join();
    const refused = await use(client, 'post', { conversation: 'refused', content: 'look', files: [file] });
    expect([refused.isError, refused.data.code]).toEqual([true, code]);
    expect((await use(client, 'read', { conversation: 'refused' })).data.code).toBe('NOT_FOUND');
  });
});
