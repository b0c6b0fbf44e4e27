import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import type { ApiRequest } from '../../../src/bus/port.ts';
import type { FilePart, MessageEntry } from '../../../src/conversation/index.ts';
import { addressOf, fileLines } from '../../../src/gateway/files.ts';
import type { Gateway, GatewayOptions } from '../../../src/gateway/index.ts';
import { Reply } from '../../../src/gateway/openai/reply.ts';
import { createFakeDaemon, messageEntry, openGateway } from './support.ts';

const PNG = Buffer.from('89504e470d0a1a0a00', 'hex');
const WAV = Buffer.from('RIFF....WAVE');
const PDF = Buffer.from('%PDF-1.7');
const HASH = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const data = (type: string, bytes: Uint8Array) =>
  `data:${type};base64,${Buffer.from(bytes).toString('base64')}`;

/** Files in and out of the standard protocols, without a daemon. With one: `test/e2e/http-files.test.ts`. */
describe('a file in a message of a standard protocol', () => {
  const open: Gateway[] = [];
  afterEach(async () => {
    for (const gateway of open.splice(0)) await gateway.close();
  });

  async function start(options: Partial<GatewayOptions> = {}) {
    const daemon = createFakeDaemon();
    const fromLogs = daemon.answer;
    daemon.answer = (request: ApiRequest) => {
      if (request.endpoint === 'agents')
        return { ok: true, body: { agents: [{ slug: 'pm', name: 'Pam', description: '' }] } };
      if (request.endpoint === 'conversation')
        return { ok: true, body: { length: daemon.logs.get('demo')?.length ?? 0, agents: {} } };
      if (request.endpoint !== 'post') return fromLogs(request);
      const { conversation, content, parts } = request.body as MessageEntry & { conversation: string };
      const [entry] = daemon.append(conversation, content ?? '');
      Object.assign(entry ?? {}, { to: ['pm'], ...(parts && { parts }) });
      return { ok: true, body: { index: entry?.index, agents: [], duplicate: false } };
    };
    const { gateway } = await openGateway({ maxHistoryBytes: 100_000, ...options }, daemon);
    open.push(gateway);
    const posts = () =>
      daemon.asked.filter(({ endpoint }) => endpoint === 'post').map(({ body }) => body as MessageEntry);
    const send = (path: string, body: object) =>
      fetch(`${gateway.url}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      });
    return { daemon, posts, send, url: gateway.url };
  }

  const v1 = (content: unknown) =>
    ['/v1/chat/completions', { model: 'parley', messages: [{ role: 'user', content }] }] as const;
  const agUi = (content: unknown) =>
    ['/ag-ui/pm', { threadId: 'demo', runId: 'r', messages: [{ id: 'u1', role: 'user', content }] }] as const;
  const a2a = (parts: unknown) =>
    [
      '/a2a/pm',
      {
        ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
        params: {
          message: { messageId: 'm1', contextId: 'demo', role: 'ROLE_USER', parts },
          configuration: { returnImmediately: true },
        },
      },
    ] as const;
  const text = { type: 'text', text: 'Look:' };
  const png64 = PNG.toString('base64');
  const source = (bytes: Buffer, mimeType: string) => ({
    type: 'data',
    value: bytes.toString('base64'),
    mimeType,
  });

  it.each([
    [
      'a picture at /v1',
      v1([text, { type: 'image_url', image_url: { url: data('image/png', PNG), detail: 'low' } }]),
      PNG,
      undefined,
    ],
    [
      'a picture of the older form at /v1',
      v1([text, { type: 'image_url', image_url: data('image/png', PNG) }]),
      PNG,
      undefined,
    ],
    [
      'a document at /v1',
      v1([text, { type: 'file', file: { filename: 'a.pdf', file_data: data('application/pdf', PDF) } }]),
      PDF,
      'a.pdf',
    ],
    [
      'a document in base64 alone at /v1',
      v1([text, { type: 'file', file: { filename: 'a.pdf', file_data: PDF.toString('base64') } }]),
      PDF,
      'a.pdf',
    ],
    [
      'sound at /v1',
      v1([text, { type: 'input_audio', input_audio: { data: WAV.toString('base64'), format: 'wav' } }]),
      WAV,
      undefined,
    ],
    [
      'a picture over AG-UI',
      agUi([text, { type: 'image', source: source(PNG, 'image/png') }]),
      PNG,
      undefined,
    ],
    [
      'a picture as a data URL over AG-UI',
      agUi([text, { type: 'image', source: { type: 'url', value: data('image/png', PNG) } }]),
      PNG,
      undefined,
    ],
    ['sound over AG-UI', agUi([text, { type: 'audio', source: source(WAV, 'audio/wav') }]), WAV, undefined],
    [
      'a document over AG-UI',
      agUi([
        text,
        { type: 'document', source: source(PDF, 'application/pdf'), metadata: { filename: 'a.pdf' } },
      ]),
      PDF,
      'a.pdf',
    ],
    [
      'bytes over A2A',
      a2a([{ text: 'Look:' }, { raw: png64, filename: 'a.png', mediaType: 'image/png' }]),
      PNG,
      'a.png',
    ],
    [
      'a data URL over A2A',
      a2a([{ text: 'Look:' }, { url: data('image/png', PNG), filename: 'a.png' }]),
      PNG,
      'a.png',
    ],
  ] as const)('is stored and posted in its place: %s', async (_, [path, body], bytes, name) => {
    const { daemon, posts, send } = await start();
    await (await send(path, body)).body?.cancel();
    expect(daemon.kept.map((kept) => [Buffer.from(kept.bytes), kept.name || undefined])).toEqual([
      [Buffer.from(bytes), name],
    ]);
    expect(posts()).toMatchObject([
      {
        content: 'Look:',
        parts: [
          { type: 'text', text: 'Look:' },
          { type: 'file', sha256: HASH(bytes), ...(name && { name }) },
        ],
      },
    ]);
  });

  it('may be all of a message', async () => {
    const { posts, send } = await start();
    await send(...v1([{ type: 'image_url', image_url: { url: data('image/png', PNG) } }]));
    expect(posts()).toMatchObject([{ content: '', parts: [{ type: 'file', sha256: HASH(PNG) }] }]);
  });

  const image = (url: string) => [text, { type: 'image_url', image_url: { url } }];
  it.each<[string, readonly [string, object], string]>([
    ['broken base64', v1(image('data:image/png;base64,AA!A')), 'messages.0.content.1: the base64 is broken'],
    [
      'base64 that is cut',
      v1(image('data:image/png;base64,AAAAA')),
      'messages.0.content.1: the base64 is broken',
    ],
    ['no bytes', v1(image('data:image/png;base64,')), 'messages.0.content.1: the file has no bytes'],
    ['a page in place of a picture', v1(image(data('text/html', PNG))), 'expected image/…, got text/html'],
    [
      'a page that says it is a picture',
      v1(image(data('image/png', Buffer.from('<html>')))),
      'expected image/…, and the bytes are text/plain',
    ],
    [
      'a page that is not base64',
      v1(image('data:text/html,<script>')),
      'expected a data URL in base64, or a URL of http or https',
    ],
    [
      'a file of the daemon',
      v1(image('file:///etc/passwd')),
      'expected a data URL in base64, or a URL of http or https',
    ],
    ['a private host', v1(image('http://127.0.0.1:7420/api/status')), 'nothing is fetched from 127.0.0.1'],
    ['a host that is not named', v1(image('https://pictures.example/a.png')), 'http.fetch.hosts'],
    [
      'a file of another service',
      v1([{ type: 'file', file: { file_id: 'file-1' } }]),
      'file_id names a file of another service',
    ],
    [
      'a part that is none',
      v1([text, { type: 'video_url', video_url: {} }]),
      'a part of the type video_url is not taken',
    ],
    ['a picture without its address', v1([{ type: 'image_url' }]), 'expected image_url: { url }'],
    ['a part that is a text', v1(['x']), 'expected an object'],
    [
      'too many',
      v1(Array.from({ length: 65 }, () => image(data('image/png', PNG))[1])),
      'messages.0.content.64: a message has at most 64 parts',
    ],
    [
      'a picture of the system',
      [
        '/v1/chat/completions',
        {
          model: 'parley',
          messages: [
            { role: 'system', content: image(data('image/png', PNG)) },
            { role: 'user', content: 'x' },
          ],
        },
      ],
      'a message of the role system has text only',
    ],
    [
      'broken base64 over AG-UI',
      agUi([{ type: 'image', source: { type: 'data', value: 'A', mimeType: 'image/png' } }]),
      'message u1, part 0: the base64 is broken',
    ],
    [
      'a page as a picture over AG-UI',
      agUi([{ type: 'image', source: source(PNG, 'text/html') }]),
      'expected image/…, got text/html',
    ],
    [
      'a private host over AG-UI',
      agUi([{ type: 'image', source: { type: 'url', value: 'http://10.0.0.1/a.png' } }]),
      'nothing is fetched from 10.0.0.1',
    ],
    [
      'a handle of a provider over AG-UI',
      agUi([{ type: 'image', source: { type: 'file', value: 'f' } }]),
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
      a2a([{ raw: 'AA!A', mediaType: 'image/png' }]),
      'message.parts.0: the base64 is broken',
    ],
    [
      'a private host over A2A',
      a2a([{ url: 'http://169.254.169.254/latest' }]),
      'nothing is fetched from 169.254.169.254',
    ],
    [
      'a file of the daemon over A2A',
      a2a([{ url: 'file:///etc/passwd' }]),
      'expected a data URL in base64, or a URL of http or https',
    ],
  ])('is refused with the reason, and nothing is posted: %s', async (_, [path, body], reason) => {
    const { posts, send } = await start();
    const answer = await send(path, body);
    expect(await answer.text()).toContain(reason);
    expect(answer.status).toBe(path === '/a2a/pm' ? 200 : 400);
    expect(posts()).toEqual([]);
  });

  it('is refused before anything is stored if another part of the message is wrong', async () => {
    const { daemon, send } = await start();
    await send(...v1([...image(data('image/png', PNG)), { type: 'video' }]));
    await send(...agUi([{ type: 'image', source: source(PNG, 'image/png') }, { type: 'video' }]));
    await send(...a2a([{ raw: png64 }, { url: 'file:///x' }]));
    expect(daemon.kept).toEqual([]);
  });

  it('has the limit of a body', async () => {
    const { daemon, send } = await start();
    const large = data('image/png', Buffer.alloc(100_000));
    for (const [path, body] of [v1(image(large)), agUi(image(large)), a2a([{ url: large }])])
      expect((await send(path, body)).status).toBe(413);
    expect(daemon.kept).toEqual([]);
  });

  it('is not sent again by its address here', async () => {
    const { daemon, posts, send, url } = await start();
    const own = `${url}/api/conversations/demo/blobs/${HASH(PNG)}`;
    await send(...v1(image(own)));
    await (
      await send(...agUi([{ type: 'image', source: { type: 'url', value: own, mimeType: 'image/png' } }]))
    ).body?.cancel();
    await send(...a2a([{ url: own }]));
    const files = posts().map(({ parts }) => parts?.find((part) => part.type === 'file')?.sha256);
    expect([files, daemon.kept]).toEqual([Array(3).fill(HASH(PNG)), []]);
  });

  const file: FilePart = {
    ...{ type: 'file', sha256: HASH(PNG), name: 'plan.png', mediaType: 'image/png', size: 9 },
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
        parts: [{ type: 'text', text: 'Shot.' }, file],
      },
      {
        role: 'assistant',
        author: pm,
        content,
        parts: [...(content ? [{ type: 'text', text: content }] : []), file],
      },
      { type: 'turn-ended', agent: 'pm', outcome: 'completed' },
    ].map((entry, at) => ({ ...messageEntry(at + 1, ''), turnId: 't', ...entry })) as MessageEntry[];
  const post = {
    ...messageEntry(0, 'Draw'),
    to: ['pm'],
    parts: [{ type: 'text', text: 'Draw' }, file],
  } as MessageEntry;

  it.each([
    ['a text', 'Here.', 'Here.\n'],
    ['no text', '', ''],
  ])('of an answer with %s is named at each protocol as it can', async (_, content, before) => {
    const { daemon, send, url } = await start();
    daemon.logs.set('demo', [post, ...turn(content)]);
    const address = `${url}/api/conversations/demo/blobs/${file.sha256}`;
    const named = `${line} ${address}`;
    const linesOf = (entry: MessageEntry) => fileLines(entry, addressOf(url, 'demo'));
    const reply = new Reply(0, ['pm'], null, [], { linesOf });
    const said = reply.accept({ kind: 'entries', entries: [post, ...turn(content)], isCurrent: true });
    expect(said.map((one) => (one.kind === 'text' ? one.text : '')).join('')).toBe(`${before}${named}`);

    const run = await send('/ag-ui/pm', { threadId: 'demo', runId: 'r', messages: [] });
    const events = (await run.text())
      .split('\n')
      .flatMap((text) => (text.startsWith('data:') ? [JSON.parse(text.slice(5))] : []));
    const shown = {
      type: 'image',
      source: { type: 'url', value: address, mimeType: 'image/png' },
      metadata: { filename: 'plan.png' },
    };
    const { messages } = events.find(({ type }) => type === 'MESSAGES_SNAPSHOT');
    expect(messages.map((message: { content?: unknown }) => message.content)).toEqual([
      [{ type: 'text', text: 'Draw' }, shown],
      '',
      [{ type: 'text', text: 'Shot.' }, shown],
      `${before}${named}`,
    ]);

    const task = await send('/a2a/pm', {
      jsonrpc: '2.0',
      id: 1,
      method: 'GetTask',
      params: { id: 'demo.0' },
    });
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
    const answer = await (await send(...agUi('Draw'))).text();
    const events = answer
      .split('\n')
      .flatMap((text) => (text.startsWith('data:') ? [JSON.parse(text.slice(5))] : []));
    const deltas = events.flatMap(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? [delta] : []));
    expect(deltas.join('')).toBe(`Here.\n${line} ${url}/api/conversations/demo/blobs/${file.sha256}`);
    const { content } = events.find(({ type }) => type === 'TOOL_CALL_RESULT');
    expect(content).toMatchObject([{ text: 'Shot.' }, { type: 'image', source: { type: 'url' } }]);
  });
});
