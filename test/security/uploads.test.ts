import { createHash, randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { openNats } from '../../src/bus/nats/index.ts';
import { posting } from '../support/http.ts';
import { shared } from '../support/lifetime.ts';
import { openProject } from '../support/project.ts';
import { until } from '../support/steps.ts';
import { bombOf, PNG, WITH_SCRIPT } from '../support/uploaded-files.ts';

/** Files that a hostile sender uploads, at each door of a daemon. Nothing of a refused one is kept. */

const MAX_BYTES = 4_000_000;
const project = shared(() =>
  openProject({
    nats: {},
    http: true,
    script: [{ when: {}, reply: { text: 'Seen.' } }],
    settings: { blobs: { maxBytes: MAX_BYTES } },
  }),
);
beforeAll(() => project.up());

type Sent = Omit<RequestInit, 'body'> & { readonly body?: string | Uint8Array };
const call = (path: string, options: Sent = {}) =>
  fetch(`${project.http}${path}`, options as RequestInit & { duplex?: 'half' });
async function put(body: Uint8Array | string, query = '') {
  const answer = await call(`/api/blobs${query}`, { method: 'PUT', body });
  return {
    status: answer.status,
    ...((await answer.json()) as { code?: string; sha256?: string; mediaType?: string }),
  };
}
const post = (conversation: string, parts: readonly object[]) =>
  call(`/api/conversations/${conversation}/messages`, posting({ content: 'look', parts }));
const spooled = () => readdir(join(project.data, 'incoming'));
const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const residentMb = async () => {
  const status = await readFile(`/proc/${project.daemon.pid}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1_024;
};

/** Sends this much of a body, then cuts the connection or waits for the answer. */
function begin(headers: Readonly<Record<string, string>>, bytes: number, isCut: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const url = new URL('/api/blobs', project.http);
    const sending = request(url, { method: 'PUT', headers: { ...headers, connection: 'close' } });
    sending.once('response', (answer) => {
      let text = '';
      answer.on('data', (piece: Buffer) => {
        text += piece;
      });
      answer.once('end', () => {
        sending.destroy();
        resolve(text);
      });
    });
    sending.once('error', (error) => (isCut ? resolve('') : reject(error)));
    const piece = Buffer.alloc(65_536, 'x');
    let left = bytes;
    const more = () => {
      while (left > 0 && !sending.destroyed) {
        left -= piece.length;
        if (!sending.write(piece)) return void sending.once('drain', more);
      }
      if (isCut) setTimeout(() => sending.destroy(), 100);
    };
    more();
  });
}

describe('an upload over HTTP', () => {
  it('that announces 10 GB is refused before it is sent', async () => {
    expect(await begin({ 'content-length': '10000000000' }, 65_536, false)).toContain('BLOB_TOO_LARGE');
  });

  it('of 10 GB without a length is refused at the limit, and memory does not grow with it', async () => {
    await put(randomBytes(MAX_BYTES));
    const before = await residentMb();
    expect(await begin({ 'transfer-encoding': 'chunked' }, 10_000_000_000, false)).toContain(
      'BLOB_TOO_LARGE',
    );
    expect((await residentMb()) - before).toBeLessThan(100);
    expect(await spooled()).toEqual([]);
  });

  it('that breaks off leaves nothing', async () => {
    await begin({ 'content-length': '300000' }, 131_072, true);
    await until(async () => (await spooled()).length === 0);
  });

  it.each([
    ['nothing', '', '', 400, 'BLOB_EMPTY'],
    ['another hash', 'abc', `?sha256=${'0'.repeat(64)}`, 400, 'BLOB_WRONG_HASH'],
    ['a hash that is none', 'abc', '?sha256=../../x', 400, 'BAD_REQUEST'],
    ['too long a name', 'abc', `?name=${'x'.repeat(256)}`, 400, 'INVALID_FIELD'],
    ['an unknown field', 'abc', '?publisher=other', 400, 'BAD_REQUEST'],
  ])('with %s is refused', async (_, body, query, status, code) => {
    expect(await put(body, query)).toMatchObject({ status, code });
    expect(await spooled()).toEqual([]);
  });

  it('that is compressed is refused: its hash would be of other bytes', async () => {
    const headers = { 'content-encoding': 'gzip' };
    expect((await call('/api/blobs', { method: 'PUT', body: 'abc', headers })).status).toBe(415);
  });
});

describe('a download', () => {
  /** The answer for a file that a message names. */
  async function served(body: Uint8Array, name: string) {
    const { sha256 } = await put(body, `?name=${encodeURIComponent(name)}`);
    expect((await post('downloads', [{ type: 'file', sha256, name }])).status).toBe(201);
    return call(`/api/conversations/downloads/blobs/${sha256}?name=${encodeURIComponent(name)}`);
  }

  it.each([
    ['HTML', Buffer.from(WITH_SCRIPT), 'page.html', 'application/octet-stream', 'attachment'],
    [
      'SVG with a script',
      Buffer.from(`<svg>${WITH_SCRIPT}</svg>`),
      'a.svg',
      'application/octet-stream',
      'attachment',
    ],
    ['an archive that expands to much', bombOf('a.html'), 'a.zip', 'application/octet-stream', 'attachment'],
    ['a PDF', Buffer.from('%PDF-1.7\n'), 'a.pdf', 'application/pdf', 'attachment'],
    ['HTML after a picture', Buffer.concat([PNG, Buffer.from(WITH_SCRIPT)]), 'a.html', 'image/png', 'inline'],
  ])('of %s runs in no browser', async (_, body, name, type, place) => {
    const answer = await served(body, name);
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(body);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': type,
      'content-disposition': `${place}; filename="${name}"`,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': expect.stringContaining('private'),
    });
  });

  it('has a name without a path, without control characters, and without its quotes', async () => {
    const answer = await served(Buffer.from('x'), '../../a"\r\nset-cookie: x\u202e\u0007é.png');
    expect(answer.headers.get('content-disposition')).toMatch(
      /^attachment; filename="[0-9a-f]{12}"; filename\*=UTF-8''a%22set-cookie%3A%20x%C3%A9\.png$/,
    );
    expect(answer.headers.get('set-cookie')).toBeNull();
  });

  it('needs a conversation that names the file, also by HEAD and with its ETag', async () => {
    const bytes = randomBytes(32);
    const { sha256 } = await put(bytes);
    const headers = { 'if-none-match': `"${sha256}"` };
    for (const options of [{}, { method: 'HEAD' }, { headers }])
      expect((await call(`/api/conversations/downloads/blobs/${sha256}`, options)).status).toBe(404);
    await post('owner', [{ type: 'file', sha256 }]);
    const own = `/api/conversations/owner/blobs/${sha256}`;
    expect((await call(own, { headers })).status).toBe(304);
    expect((await call(own, { method: 'HEAD' })).headers.get('content-length')).toBe('32');
    expect((await call(`/api/conversations/downloads/blobs/${sha256}`)).status).toBe(404);
    expect((await call('/api/conversations/owner/blobs/..%2f..%2fhttp-token')).status).toBe(400);
  });
});

describe('a post that names a file that is not stored', () => {
  const parts = [{ type: 'file', sha256: hashOf(Buffer.from('never sent')) }];

  it('is refused over HTTP, with the next step', async () => {
    const answer = await post('missing', parts);
    expect([answer.status, await answer.json()]).toMatchObject([409, { code: 'MISSING_BLOB' }]);
  });

  it('becomes a dead letter on parley.in', async () => {
    const connection = await openNats({ url: project.nats.url });
    await connection
      .jetstream()
      .publish('parley.in.mallory.stream', JSON.stringify({ content: 'look', parts }));
    await connection.close();
    const client = await project.connect();
    const letters = async () => (await client.request('dead', { publisher: 'mallory' })).letters;
    await until(async () => (await letters()).length > 0);
    expect(await letters()).toMatchObject([{ code: 'MISSING_BLOB', conversation: 'stream' }]);
  });
});

describe('an upload over NATS', () => {
  it('of another publisher cannot be continued, and one that is refused leaves nothing', async () => {
    const client = await project.connect();
    const piece = { upload: 'u', offset: 0, data: 'AAAA', publisher: 'alice' };
    expect(await client.request('upload', piece)).toEqual({ received: 3 });
    const stolen = await client.request('upload', { ...piece, offset: 3, publisher: 'mallory' });
    expect(stolen).toEqual({ received: 0 });
    const last = { sha256: '0'.repeat(64), size: 6 };
    const refused = client.request('upload', { ...piece, offset: 3, last });
    await expect(refused).rejects.toMatchObject({ code: 'BLOB_WRONG_HASH' });
    expect(await spooled()).toEqual([]);
  });

  it('that has more bytes than are allowed, whatever it announced, is refused and leaves nothing', async () => {
    const client = await project.connect();
    const endless = async function* () {
      for (;;) yield Buffer.alloc(500_000);
    };
    const sent = client.upload(endless(), { publisher: 'mallory' });
    await expect(sent).rejects.toMatchObject({ code: 'BLOB_TOO_LARGE' });
    expect(await spooled()).toEqual([]);
  });
});
