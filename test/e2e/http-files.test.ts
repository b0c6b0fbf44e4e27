import { createHash } from 'node:crypto';
import { ClientFactory, ClientFactoryOptions } from '@a2a-js/sdk/client';
import { HttpAgent, type Message } from '@ag-ui/client';
import { type ContentPart, EventType } from '@ag-ui/core';
import OpenAI from 'openai';
import { beforeAll, describe, expect, it } from 'vitest';
import { checkLaws, type FilePart, filesOf } from '../../src/conversation/index.ts';
import { message, text, wordsOf } from '../support/a2a-client.ts';
import type { FakeHandler } from '../support/fake-provider.ts';
import { posting } from '../support/http.ts';
import { entriesOf, ofType } from '../support/log.ts';
import { itLong } from '../support/long.ts';
import { providerSettings, sharedProject } from '../support/project.ts';

type Parts = OpenAI.ChatCompletionContentPart[];
type Past = OpenAI.ChatCompletionMessageParam;
const HASH = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const data = (type: string, bytes: Buffer) => `data:${type};base64,${bytes.toString('base64')}`;

/** A picture of one pixel, with a comment that makes it another one. */
function picture(comment: string, bytes = 0): Buffer {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==',
    'base64',
  );
  return Buffer.concat([png, Buffer.from(comment), Buffer.alloc(bytes, 7)]);
}
const PDF = Buffer.from('%PDF-1.7\n%%EOF\n');
const WAV = Buffer.concat([
  Buffer.from('RIFF'),
  Buffer.from([36, 0, 0, 0]),
  Buffer.from('WAVEfmt '),
  Buffer.alloc(28),
]);

/** Says which pictures the newest messages show it, by the hash of their bytes. */
const sees: FakeHandler = ({ json }) => {
  const last = json.messages?.at(-1);
  const path = /attach (@blob\/\w+)/.exec(JSON.stringify(last))?.[1];
  if (path) return { toolCalls: [{ id: 'a', name: 'attach', arguments: JSON.stringify({ path }) }] };
  const urls = JSON.stringify(json.messages).match(/data:image\/png;base64,[A-Za-z0-9+/=]+/g) ?? [];
  if (urls.some((url) => Buffer.from(url.slice(url.indexOf(',') + 1), 'base64').includes('broken')))
    return {
      status: 400,
      body: { error: { message: 'Could not process image', type: 'invalid_request_error' } },
    };
  const seen = urls.map((url) => HASH(Buffer.from(url.slice(url.indexOf(',') + 1), 'base64')).slice(0, 8));
  return { text: `I see ${seen.join(' and ') || 'nothing'}.` };
};

/** Files over the standard protocols with their official clients, on a daemon in its own process with a model that sees. */
describe('a file sent by a standard client', () => {
  let openai: OpenAI;
  const project = sharedProject({
    settings: (url) => {
      const settings = providerSettings(url, { retry: { attempts: 1 } });
      const { default: model } = settings.models as { default: object };
      return { ...settings, models: { default: { ...model, accepts: ['image'] } } };
    },
    model: sees,
    agents: { pm: '---\nname: Pam\ntools: [attach]\n---\nPERSONA OF PAM' },
    http: true,
  });
  beforeAll(() => {
    openai = new OpenAI({ baseURL: `${project.http}/v1`, apiKey: 'none', maxRetries: 0 });
  });

  const image = (bytes: Buffer): Parts[number] => ({
    type: 'image_url',
    image_url: { url: data('image/png', bytes) },
  });
  const user = (...parts: Parts): Past => ({ role: 'user', content: parts });
  const said = (words: string): Parts[number] => ({ type: 'text', text: words });
  const eyes = (...pictures: Buffer[]) =>
    `I see ${pictures.map((bytes) => HASH(bytes).slice(0, 8)).join(' and ')}.`;
  async function chat(messages: Past[], headers: Record<string, string> = {}) {
    const { data: answer, response } = await openai.chat.completions
      .create({ model: 'pm', messages }, { headers })
      .withResponse();
    return {
      answer: answer.choices[0]?.message.content ?? '',
      conversation: String(response.headers.get('x-parley-conversation')),
    };
  }
  const people = async (conversation: string) =>
    ofType(await entriesOf(await project.connect(), conversation), 'message').filter(
      ({ role }) => role === 'user',
    );
  async function stored(conversation: string, file: FilePart | undefined): Promise<Buffer> {
    const answer = await fetch(`${project.http}/api/conversations/${conversation}/blobs/${file?.sha256}`);
    expect(answer.status).toBe(200);
    return Buffer.from(await answer.arrayBuffer());
  }

  it('a picture of the OpenAI client is stored once and seen by the model, and its history continues the conversation', async () => {
    const [one, two] = [picture('one'), picture('two')];
    const first = await chat([user(said('What is it?'), image(one))]);
    expect(first.answer).toBe(eyes(one));
    const history: Past[] = [
      user(said('What is it?'), image(one)),
      { role: 'assistant', content: first.answer },
    ];
    const second = await chat([...history, user(said('And this?'), image(two))]);
    expect(second).toEqual({ answer: eyes(one, two), conversation: first.conversation });
    const third = await chat([
      ...history,
      user(said('And this?'), image(two)),
      { role: 'assistant', content: second.answer },
      { role: 'user', content: 'Which is better?' },
    ]);
    expect(third.conversation).toBe(first.conversation);
    const posts = await people(first.conversation);
    expect(posts.map(({ content }) => content)).toEqual(['What is it?', 'And this?', 'Which is better?']);
    expect(posts.flatMap((post) => filesOf(post))).toMatchObject([
      { sha256: HASH(one), mediaType: 'image/png', width: 1, height: 1, size: one.length },
      { sha256: HASH(two) },
    ]);
    expect(await stored(first.conversation, filesOf(posts[0] ?? {})[0])).toEqual(one);
    const shown = await fetch(`${project.http}/api/conversations/${first.conversation}`);
    const files = { count: 2, bytes: one.length + two.length, maxBytes: 2_147_483_648 };
    expect(await shown.json()).toMatchObject({ files });
    const status = await project.parley('status', first.conversation);
    expect(status.stdout).toContain(`2 files, ${files.bytes} B of 2147.5 MB`);
  });

  it('pictures of a history from elsewhere begin the conversation, and the model sees them; one that is elsewhere is named', async () => {
    const [one, two, three] = [picture('past'), picture('result'), picture('now')];
    const elsewhere: Parts[number] = { type: 'image_url', image_url: { url: 'http://192.0.2.1/far.png' } };
    const history = [
      user(said('What was it?'), image(one), elsewhere),
      { role: 'assistant', content: 'Something.' },
      user(image(two)),
      { role: 'assistant', content: 'Something else.' },
    ] as Past[];
    const first = await chat([...history, user(said('And now?'), image(three))]);
    expect(first.answer).toBe(eyes(one, two, three));
    const seeded = await people(first.conversation);
    expect(seeded.map(({ content }) => content)).toEqual([
      expect.stringMatching(/^What was it\?\n\[left out: image_url [0-9a-f]{12}\]$/),
      'Quoted by openai, an answer:\n> Something.',
      '',
      'Quoted by openai, an answer:\n> Something else.',
      'And now?',
    ]);
    expect(seeded.map((entry) => filesOf(entry).map(({ sha256, width }) => [sha256, width]))).toEqual(
      [[one], [], [two], [], [three]].map((files) => files.map((bytes) => [HASH(bytes), 1])),
    );
    expect(await stored(first.conversation, filesOf(seeded[0] ?? {})[0])).toEqual(one);
    const next = await chat([
      ...history,
      user(said('And now?'), image(three)),
      { role: 'assistant', content: first.answer },
      user(said('Sure?')),
    ]);
    expect(next).toEqual(first);
    expect(await people(first.conversation)).toHaveLength(6);
  });

  itLong(
    'a history with a picture that is broken or too large is refused with its place, and begins nothing',
    async () => {
      const begin = (url: string) =>
        chat([
          { role: 'user', content: [{ type: 'image_url', image_url: { url } }] } as unknown as Past,
          { role: 'assistant', content: 'A broken one.' },
          { role: 'user', content: 'Sure?' },
        ]);
      await expect(begin('data:image/png;base64,%%%')).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining('messages.0.content.0'),
      });
      await expect(begin(data('image/png', PDF))).rejects.toMatchObject({
        message: expect.stringContaining('expected image/…, and the bytes are application/pdf'),
      });
      await expect(begin(data('image/png', picture('large', 21_000_000)))).rejects.toMatchObject({
        status: 413,
      });
    },
  );

  it('a picture that the provider cannot read is left out, and the conversation goes on with its line', async () => {
    const first = await chat([user(said('Broken?'), image(picture('broken')))]);
    expect(first.answer).toBe('I see nothing.');
    const good = picture('good');
    const next = await chat([
      user(said('Broken?'), image(picture('broken'))),
      { role: 'assistant', content: first.answer },
      user(said('And this?'), image(good)),
    ]);
    expect(next).toEqual({ answer: eyes(good), conversation: first.conversation });
    const entries = await entriesOf(await project.connect(), first.conversation);
    expect(ofType(entries, 'summary')).toMatchObject([{ withoutFiles: [0] }]);
    expect(checkLaws(entries)).toEqual([]);
  });

  it('another picture with the same words is another chat, and a retry of the OpenAI client posts nothing', async () => {
    const [one, two] = [picture('red'), picture('blue')];
    const ask = (bytes: Buffer, headers = {}) => chat([user(said('Colour?'), image(bytes))], headers);
    const first = await ask(one);
    expect((await ask(two)).conversation).not.toBe(first.conversation);
    const again = await ask(one, { 'x-stainless-retry-count': '1' });
    expect(again).toEqual(first);
    expect(await people(first.conversation)).toHaveLength(1);
    const other = await chat([
      user(said('Colour?'), image(two)),
      { role: 'assistant', content: first.answer },
      { role: 'user', content: 'Sure?' },
    ]);
    expect(other.conversation).not.toBe(first.conversation);
  });

  itLong('a picture of 5 MB of the OpenAI client is taken, and one beyond the limit is refused', async () => {
    const large = picture('large', 5_000_000);
    expect((await chat([user(image(large))])).answer).toBe(eyes(large));
    const beyond = picture('beyond', 21 * 1_024 ** 2);
    await expect(chat([user(image(beyond))])).rejects.toMatchObject({
      status: 413,
      code: 'BLOB_TOO_LARGE',
    });
    const body = picture('body', 40 * 1_024 ** 2);
    await expect(chat([user(image(body))])).rejects.toMatchObject({ status: 413, code: 'TOO_LARGE' });
  });

  it('a picture that an agent attaches is named with its address in the answer, and the chat continues', async () => {
    const one = picture('attached');
    const sha256 = HASH(one);
    const question = user(said(`attach @blob/${sha256.slice(0, 12)}`), image(one));
    const first = await chat([question]);
    const address = `${project.http}/api/conversations/${first.conversation}/blobs/${sha256}`;
    expect(first.answer.split('\n').at(-1)).toMatch(/^\[file: image\/png, .*@blob\/\w+\] http/);
    expect(first.answer.endsWith(` ${address}`)).toBe(true);
    const second = await chat([
      question,
      { role: 'assistant', content: first.answer },
      user(said('And now?')),
    ]);
    expect(second.conversation).toBe(first.conversation);
    const task = await fetch(
      `${project.http}/a2a/pm`,
      posting(
        { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: `${first.conversation}.0` } },
        { 'a2a-version': '1.0' },
      ),
    );
    const { result } = (await task.json()) as { result: { artifacts: { parts: object[] }[] } };
    expect(result.artifacts.at(-1)?.parts.at(-1)).toMatchObject({ url: address, mediaType: 'image/png' });
  });

  it('the parts that the AI SDK and LangChain send are stored with their types', async () => {
    const one = picture('sdk');
    const content = [
      { type: 'text', text: 'Look' },
      { type: 'image_url', image_url: { url: data('image/png', one) } },
      { type: 'file', file: { filename: 'a.pdf', file_data: data('application/pdf', PDF) } },
      { type: 'input_audio', input_audio: { data: WAV.toString('base64'), format: 'wav' } },
    ];
    const answer = await fetch(
      `${project.http}/v1/chat/completions`,
      posting({ model: 'pm', messages: [{ role: 'user', content }] }),
    );
    expect(answer.status).toBe(200);
    const [post] = await people(String(answer.headers.get('x-parley-conversation')));
    expect(filesOf(post ?? {})).toMatchObject([
      { mediaType: 'image/png' },
      { mediaType: 'application/pdf', name: 'a.pdf' },
      { mediaType: 'audio/wav' },
    ]);
  });

  it('a picture over AG-UI is seen, and a second application gets it from the log and continues with it', async () => {
    const one = picture('ag-ui');
    const url = `${project.http}/ag-ui/pm`;
    const content: ContentPart[] = [
      { type: 'text', text: 'What is it?' },
      { type: 'image', source: { type: 'data', value: one.toString('base64'), mimeType: 'image/png' } },
    ];
    const first = new HttpAgent({
      url,
      threadId: 'seen',
      initialMessages: [{ id: 'u1', role: 'user', content } as Message],
    });
    await first.runAgent();
    expect(first.messages.at(-1)).toMatchObject({ role: 'assistant', content: eyes(one) });
    expect(filesOf((await people('seen'))[0] ?? {})).toMatchObject([
      { sha256: HASH(one), mediaType: 'image/png' },
    ]);
    const second = new HttpAgent({ url, threadId: 'seen' });
    await second.runAgent();
    const [shown] = second.messages;
    const address = `${project.http}/api/conversations/seen/blobs/${HASH(one)}`;
    expect(shown?.content).toEqual([
      { type: 'text', text: 'What is it?' },
      { type: 'image', source: { type: 'url', value: address, mimeType: 'image/png' } },
    ]);
    const copy = new HttpAgent({
      url,
      threadId: 'copy',
      initialMessages: [{ ...shown, id: 'u2' } as Message],
    });
    await copy.runAgent();
    expect(copy.messages.at(-1)).toMatchObject({ content: eyes(one) });
    const events: EventType[] = [];
    const replay = new HttpAgent({ url, threadId: 'seen', initialMessages: [shown as Message] });
    await replay.runAgent({}, { onEvent: ({ event }) => void events.push(event.type) });
    expect(events.at(-1)).toBe(EventType.RUN_FINISHED);
    expect(await people('seen')).toHaveLength(1);
  });

  it.each(['1.0', '0.3'])(
    'a picture over A2A %s is seen, and the task has it with its address',
    async (version) => {
      const one = picture(`a2a ${version}`);
      const card = `${project.http}/a2a/pm/.well-known/agent-card.json`;
      const contextId = `a2a-${version.replace('.', '-')}`;
      const raw = {
        ...text(''),
        content: { $case: 'raw' as const, value: one },
        filename: 'one.png',
        mediaType: 'image/png',
      };
      if (version === '1.0') {
        const client = await new ClientFactory(ClientFactoryOptions.default).createFromUrl(card, '');
        expect((await client.getAgentCard()).defaultInputModes).toContain('*/*');
        const task = await client.sendMessage(message('Look', { contextId, parts: [text('Look'), raw] }));
        if ('messageId' in task) throw new Error('expected a task');
        expect(wordsOf(task.artifacts[0]?.parts)).toBe(eyes(one));
        expect(task.history[0]?.parts[1]).toMatchObject({
          content: {
            $case: 'url',
            value: expect.stringContaining(`/api/conversations/${contextId}/blobs/${HASH(one)}`),
          },
          ...{ filename: 'one.png', mediaType: 'image/png' },
        });
      } else {
        const file = { bytes: one.toString('base64'), name: 'one.png', mimeType: 'image/png' };
        const parts = [
          { kind: 'text', text: 'Look' },
          { kind: 'file', file },
        ];
        const params = {
          message: { kind: 'message', messageId: 'm1', contextId, role: 'user', parts },
          configuration: { blocking: true },
        };
        const answer = await fetch(
          `${project.http}/a2a/pm`,
          posting({ jsonrpc: '2.0', id: 1, method: 'message/send', params }),
        );
        // biome-ignore lint/suspicious/noExplicitAny: read as a program would
        const { result } = (await answer.json()) as { result: any };
        expect(result.artifacts[0].parts[0].text).toBe(eyes(one));
        expect(result.history[0].parts[1].file).toMatchObject({
          name: 'one.png',
          uri: expect.stringContaining(HASH(one)),
        });
      }
      const [post] = await people(contextId);
      expect(filesOf(post ?? {})).toMatchObject([{ name: 'one.png', sha256: HASH(one) }]);
    },
  );

  it.each([
    ['another type', data('image/png', Buffer.from('<html>hello</html>')), 'the bytes are text/plain'],
    ['broken base64', 'data:image/png;base64,AA!A', 'base64 is broken'],
    ['a private host', `http://127.0.0.1:1/x.png`, 'nothing is fetched from 127.0.0.1'],
    ['a file of the daemon', 'file:///etc/passwd', 'expected a data URL in base64'],
    ['a page', 'data:text/html,<script>alert(1)</script>', 'expected a data URL in base64'],
    [
      'a file that was never stored',
      () => `${project.http}/api/conversations/x/blobs/${'0'.repeat(64)}`,
      'not stored',
    ],
  ])('the OpenAI client gets the reason for %s, and nothing is posted', async (_, given, reason) => {
    const url = typeof given === 'string' ? given : given();
    const named = { 'x-parley-conversation': 'refused' };
    const refused = chat([user(said('Look'), { type: 'image_url', image_url: { url } })], named);
    await expect(refused).rejects.toMatchObject({ status: 400, message: expect.stringContaining(reason) });
    const answer = await fetch(`${project.http}/api/conversations/refused`);
    expect(answer.status).toBe(404);
  });
});
