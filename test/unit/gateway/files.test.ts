import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ApiRequest } from '../../../src/bus/port.ts';
import type { FilePart, MessageEntry } from '../../../src/conversation/index.ts';
import { addressOf, fileLines } from '../../../src/gateway/files.ts';
import { Reply } from '../../../src/gateway/openai/reply.ts';
import { posting } from '../../support/http.ts';
import { eventsOf, gatewaysWithPosts, messageEntry } from './support.ts';

const PNG = Buffer.from('89504e470d0a1a0a00', 'hex');
const WAV = Buffer.from('RIFF....WAVE');
const PDF = Buffer.from('%PDF-1.7');
const HASH = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');
const data = (type: string, bytes: Uint8Array) => `data:${type};base64,${base64(bytes)}`;
const PNG64 = base64(PNG);
const PNG_URL = data('image/png', PNG);
const PDF_URL = data('application/pdf', PDF);
const PAGE = data('image/png', Buffer.from('<html>'));
const RPC = { jsonrpc: '2.0', id: 1 };

/** Files in and out of the standard protocols, without a daemon. With one: `test/e2e/http-files.test.ts`. */
describe('a file in a message of a standard protocol', () => {
  const open = gatewaysWithPosts();

  async function start() {
    const { daemon, gateway } = await open({ maxHistoryBytes: 100_000 });
    const answers = daemon.answer;
    daemon.answer = async (request: ApiRequest) => {
      if (request.endpoint === 'conversation')
        return { ok: true, body: { length: daemon.logs.get('demo')?.length ?? 0, agents: {} } };
      const answer = await answers(request);
      if (request.endpoint !== 'post' || !answer.ok) return answer;
      return { ok: true, body: { ...(answer.body as object), agents: [] } }; // the reply is over at once
    };
    const posts = () =>
      daemon.asked.filter(({ endpoint }) => endpoint === 'post').map(({ body }) => body as MessageEntry);
    const send = (path: string, body: object) =>
      fetch(`${gateway.url}${path}`, posting(body, { 'a2a-version': '1.0' }));
    return { daemon, posts, send, url: gateway.url };
  }

  const text = { type: 'text', text: 'Look:' };
  /** A request of each protocol whose message has these parts. */
  const v1 = (content: unknown, system?: unknown) => {
    const messages = [...(system ? [{ role: 'system', content: system }] : []), { role: 'user', content }];
    return ['/v1/chat/completions', { model: 'parley', messages }] as const;
  };
  const agUi = (content: unknown) =>
    ['/ag-ui/pm', { threadId: 'demo', runId: 'r', messages: [{ id: 'u1', role: 'user', content }] }] as const;
  const a2a = (...files: object[]) => {
    const parts = [{ text: 'Look:' }, ...files];
    const message = { messageId: 'm1', contextId: 'demo', role: 'ROLE_USER', parts };
    const params = { message, configuration: { returnImmediately: true } };
    return ['/a2a/pm', { ...RPC, method: 'SendMessage', params }] as const;
  };
  /** The parts of such a message: at /v1, and over AG-UI. */
  const image = (url: string, more: object = {}) => [
    text,
    { type: 'image_url', image_url: { url, ...more } },
  ];
  const file = (of: object) => [text, { type: 'file', file: { filename: 'a.pdf', ...of } }];
  const shown = (value: string, mimeType = 'image/png', type = 'image', more: object = {}) => [
    text,
    { type, source: { type: 'data', value, mimeType }, ...more },
  ];
  const linked = (value: string, type = 'url') => [text, { type: 'image', source: { type, value } }];
  const sound = [text, { type: 'input_audio', input_audio: { data: base64(WAV), format: 'wav' } }];
  const older = [text, { type: 'image_url', image_url: PNG_URL }];
  const named = { metadata: { filename: 'a.pdf' } };

  it.each<[string, readonly [string, object], Uint8Array, string?]>([
    ['a picture at /v1', v1(image(PNG_URL, { detail: 'low' })), PNG],
    ['a picture of the older form at /v1', v1(older), PNG],
    ['a document at /v1', v1(file({ file_data: PDF_URL })), PDF, 'a.pdf'],
    ['a document in base64 alone at /v1', v1(file({ file_data: base64(PDF) })), PDF, 'a.pdf'],
    ['sound at /v1', v1(sound), WAV],
    ['a picture over AG-UI', agUi(shown(PNG64)), PNG],
    ['a picture as a data URL over AG-UI', agUi(linked(PNG_URL)), PNG],
    ['sound over AG-UI', agUi(shown(base64(WAV), 'audio/wav', 'audio')), WAV],
    ['a document over AG-UI', agUi(shown(base64(PDF), 'application/pdf', 'document', named)), PDF, 'a.pdf'],
    ['bytes over A2A', a2a({ raw: PNG64, filename: 'a.png', mediaType: 'image/png' }), PNG, 'a.png'],
    ['a data URL over A2A', a2a({ url: PNG_URL, filename: 'a.png' }), PNG, 'a.png'],
  ])('is stored and posted in its place: %s', async (_, [path, body], bytes, name) => {
    const { daemon, posts, send } = await start();
    await (await send(path, body)).body?.cancel();
    expect(daemon.kept.map((one) => [Buffer.from(one.bytes), one.name || undefined])).toEqual([
      [Buffer.from(bytes), name],
    ]);
    const parts = [text, { type: 'file', sha256: HASH(bytes), ...(name && { name }) }];
    expect(posts()).toMatchObject([{ content: 'Look:', parts }]);
  });

  it('may be all of a message', async () => {
    const { posts, send } = await start();
    await send(...v1(image(PNG_URL).slice(1)));
    expect(posts()).toMatchObject([{ content: '', parts: [{ type: 'file', sha256: HASH(PNG) }] }]);
  });

  const UNREAD = 'expected a data URL in base64, or a URL of http or https';
  it.each<[string, readonly [string, object], string]>([
    ['broken base64', v1(image('data:image/png;base64,AA!A')), 'messages.0.content.1: the base64 is broken'],
    [
      'base64 that is cut',
      v1(image('data:image/png;base64,AAAAA')),
      'messages.0.content.1: the base64 is broken',
    ],
    ['no bytes', v1(image('data:image/png;base64,')), 'messages.0.content.1: the file has no bytes'],
    ['a page in place of a picture', v1(image(data('text/html', PNG))), 'expected image/…, got text/html'],
    ['a page that says it is a picture', v1(image(PAGE)), 'expected image/…, and the bytes are text/plain'],
    ['a page that is not base64', v1(image('data:text/html,<script>')), UNREAD],
    ['a file of the daemon', v1(image('file:///etc/passwd')), UNREAD],
    ['a private host', v1(image('http://127.0.0.1:7420/api/status')), 'nothing is fetched from 127.0.0.1'],
    ['a host that is not named', v1(image('https://pictures.example/a.png')), 'http.fetch.hosts'],
    ['a file of another service', v1(file({ file_id: 'file-1' })), 'file_id names a file of another service'],
    ['a part that is none', v1([text, { type: 'video_url' }]), 'a part of the type video_url is not taken'],
    ['a picture without its address', v1([{ type: 'image_url' }]), 'expected image_url: { url }'],
    ['a part that is a text', v1(['x']), 'expected an object'],
    [
      'too many',
      v1(Array(65).fill(image(PNG_URL)[1])),
      'messages.0.content.64: a message has at most 64 parts',
    ],
    ['a picture of the system', v1('x', image(PNG_URL)), 'a message of the role system has text only'],
    ['broken base64 over AG-UI', agUi(shown('A')), 'message u1, part 1: the base64 is broken'],
    ['a page as a picture over AG-UI', agUi(shown(PNG64, 'text/html')), 'expected image/…, got text/html'],
    ['a private host over AG-UI', agUi(linked('http://10.0.0.1/a.png')), 'nothing is fetched from 10.0.0.1'],
    [
      'a handle of a provider over AG-UI',
      agUi(linked('f', 'file')),
      'a source of the type \\"file\\" is not taken',
    ],
    [
      'a part without a source over AG-UI',
      agUi([{ type: 'image' }]),
      'expected source: { type, value, mimeType }',
    ],
    ['an unknown part over AG-UI', agUi([{ type: 'hologram' }]), 'expected a part of the type text, image'],
    [
      'broken base64 over A2A',
      a2a({ raw: 'AA!A', mediaType: 'image/png' }),
      'message.parts.1: the base64 is broken',
    ],
    [
      'a private host over A2A',
      a2a({ url: 'http://169.254.169.254/' }),
      'nothing is fetched from 169.254.169.254',
    ],
    ['a file of the daemon over A2A', a2a({ url: 'file:///etc/passwd' }), UNREAD],
  ])('is refused with the reason, and nothing is posted: %s', async (_, [path, body], reason) => {
    const { posts, send } = await start();
    const answer = await send(path, body);
    expect(await answer.text()).toContain(reason);
    expect(answer.status).toBe(path === '/a2a/pm' ? 200 : 400);
    expect(posts()).toEqual([]);
  });

  it('that is all of a message is an item of its conversation, without a text', async () => {
    const { daemon, url } = await start();
    const picture = { type: 'file', sha256: HASH(PNG), mediaType: 'image/png', size: 9 } as FilePart;
    for (const [at, parts] of [[], [picture]].entries())
      Object.assign(daemon.append('demo', '')[0] ?? {}, { content: at === 0 ? null : '', parts });
    const image_url = addressOf(url, 'demo')(picture);
    const item = {
      ...{ id: 'msg_1_demo', type: 'message', status: 'completed', role: 'user' },
      content: [{ type: 'input_image', image_url, detail: 'auto' }],
    };
    const read = async (path: string) => (await fetch(`${url}/v1/conversations/demo/items${path}`)).json();
    expect(await read('')).toMatchObject({ data: [item] });
    expect(await read('/msg_1_demo')).toEqual(item);
  });

  it('is refused before anything is stored if another part of the message is wrong', async () => {
    const { daemon, send } = await start();
    await send(...v1([...image(PNG_URL), { type: 'video' }]));
    await send(...agUi([...shown(PNG64), { type: 'video' }]));
    await send(...a2a({ raw: PNG64 }, { url: 'file:///x' }));
    expect(daemon.kept).toEqual([]);
  });

  it('has the limit of a body', async () => {
    const { daemon, send } = await start();
    const large = data('image/png', Buffer.alloc(100_000));
    for (const [path, body] of [v1(image(large)), agUi(image(large)), a2a({ url: large })])
      expect((await send(path, body)).status).toBe(413);
    expect(daemon.kept).toEqual([]);
  });

  it('is not sent again by its address here', async () => {
    const { daemon, posts, send, url } = await start();
    const own = `${url}/api/conversations/demo/blobs/${HASH(PNG)}`;
    await send(...v1(image(own)));
    await (await send(...agUi(linked(own)))).body?.cancel();
    await send(...a2a({ url: own }));
    const files = posts().map(({ parts }) => parts?.find((part) => part.type === 'file')?.sha256);
    expect([files, daemon.kept]).toEqual([Array(3).fill(HASH(PNG)), []]);
  });

  const kept: FilePart = {
    type: 'file',
    sha256: HASH(PNG),
    name: 'plan.png',
    mediaType: 'image/png',
    size: 9,
  };
  const line = `[file plan.png: image/png, 9 B, @blob/${HASH(PNG).slice(0, 12)}]`;
  const pm = { kind: 'agent', id: 'pm', name: 'pm' };
  const call = { id: 'c', type: 'function', function: { name: 'shot', arguments: '{}' } };
  /** A turn with a picture in its result and one in its answer. */
  const turn = (content: string) =>
    [
      { type: 'turn-started', agent: 'pm', trigger: [0] },
      { role: 'assistant', author: pm, content: null, tool_calls: [call] },
      {
        ...{ role: 'tool', author: pm, content: 'Shot.', call: { index: 2, position: 0 } },
        parts: [{ type: 'text', text: 'Shot.' }, kept],
      },
      {
        role: 'assistant',
        author: pm,
        content,
        parts: [...(content ? [{ type: 'text', text: content }] : []), kept],
      },
      { type: 'turn-ended', agent: 'pm', outcome: 'completed' },
    ].map((entry, at) => ({ ...messageEntry(at + 1, ''), turnId: 't', ...entry })) as MessageEntry[];
  const post = {
    ...messageEntry(0, 'Draw'),
    to: ['pm'],
    parts: [{ type: 'text', text: 'Draw' }, kept],
  } as MessageEntry;

  it.each([
    ['a text', 'Here.', 'Here.\n'],
    ['no text', '', ''],
  ])('of an answer with %s is named at each protocol as it can', async (_, content, before) => {
    const { daemon, send, url } = await start();
    daemon.logs.set('demo', [post, ...turn(content)]);
    const address = `${url}/api/conversations/demo/blobs/${kept.sha256}`;
    const named = `${line} ${address}`;
    const linesOf = (entry: MessageEntry) => fileLines(entry, addressOf(url, 'demo'));
    const reply = new Reply(0, ['pm'], null, [], { linesOf });
    const said = reply.accept({ kind: 'entries', entries: [post, ...turn(content)], isCurrent: true });
    expect(said.map((one) => (one.kind === 'text' ? one.text : '')).join('')).toBe(`${before}${named}`);

    const run = await send('/ag-ui/pm', { threadId: 'demo', runId: 'r', messages: [] });
    const events = eventsOf(await run.text());
    const shown = {
      type: 'image',
      source: { type: 'url', value: address, mimeType: 'image/png' },
      metadata: { filename: 'plan.png' },
    };
    const { messages } = events.find(({ type }) => type === 'MESSAGES_SNAPSHOT') ?? expect.unreachable();
    expect(messages.map((message: { content?: unknown }) => message.content)).toEqual([
      [{ type: 'text', text: 'Draw' }, shown],
      '',
      [{ type: 'text', text: 'Shot.' }, shown],
      `${before}${named}`,
    ]);

    const task = await send('/a2a/pm', { ...RPC, method: 'GetTask', params: { id: 'demo.0' } });
    const { result } = (await task.json()) as { result: { history: object[]; artifacts: object[] } };
    const part = { url: address, filename: 'plan.png', mediaType: 'image/png' };
    expect(result.history).toMatchObject([{ parts: [{ text: 'Draw' }, part] }]);
    expect(result.artifacts).toMatchObject([{ parts: [...(content ? [{ text: content }] : []), part] }]);
  });

  it('of an answer and of a result is sent over AG-UI as they are written', async () => {
    const { daemon, send, url } = await start();
    const before = daemon.answer;
    daemon.answer = (request) => {
      const answer = before(request);
      if (request.endpoint !== 'post') return answer;
      const entries = turn('Here.');
      daemon.logs.get('demo')?.push(...entries);
      daemon.publish('demo', { kind: 'entries', entries });
      return { ok: true, body: { index: 0, agents: ['pm'], duplicate: false } };
    };
    const events = eventsOf(await (await send(...agUi('Draw'))).text());
    const deltas = events.flatMap(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? [delta] : []));
    expect(deltas.join('')).toBe(`Here.\n${line} ${url}/api/conversations/demo/blobs/${kept.sha256}`);
    const { content } = events.find(({ type }) => type === 'TOOL_CALL_RESULT') ?? expect.unreachable();
    expect(content).toMatchObject([{ text: 'Shot.' }, { type: 'image', source: { type: 'url' } }]);
  });
});
