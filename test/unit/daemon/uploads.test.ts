import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { download, type FileContent, type Pieces, upload } from '../../../src/client/files.ts';
import { SharedApi, type SharedApiParts } from '../../../src/daemon/cluster/shared-api.ts';
import { asError, ParleyError } from '../../../src/kernel/index.ts';
import { errorWith } from '../../support/error-with.ts';
import { perTest } from '../../support/lifetime.ts';
import { shortenWaits } from '../../support/short-waits.ts';
import { createDaemon } from './daemon.ts';

const hashOf = (bytes: string | Uint8Array) => createHash('sha256').update(bytes).digest('hex');
/** As base64 in one message: pieces of 5,250 bytes. */
const PAYLOAD = 10_000;

describe('a file that is sent in pieces', () => {
  const daemon = perTest(() => createDaemon());
  let sent: { readonly offset: number }[];
  /** Runs before each request. */
  let before: () => void;
  let pieces: Pieces;

  beforeEach(() => {
    sent = [];
    before = () => undefined;
    pieces = {
      maxPayload: PAYLOAD,
      async send(verb, body) {
        sent.push({ offset: ('offset' in body && body.offset) || 0 });
        before();
        const answer = await daemon.request(verb, JSON.parse(JSON.stringify(body)));
        if (!answer.ok) throw asError(answer.refusal);
        return answer.body as never;
      },
    };
  });

  const BYTES = Buffer.from(Array.from({ length: 12_000 }, (_, at) => at % 251));
  const send = (content: FileContent, name?: string) =>
    upload(pieces, 'up-1', content, { publisher: 'alice', ...(name && { name }) });
  async function* streamed(...parts: readonly Uint8Array[]) {
    yield* parts;
  }
  async function received(conversation: string, sha256: string) {
    const read: Uint8Array[] = [];
    for await (const bytes of download(pieces, conversation, sha256, {})) read.push(bytes);
    return Buffer.concat(read);
  }

  it.each<[string, () => FileContent]>([
    ['bytes', () => BYTES],
    ['a Blob', () => new Blob([BYTES])],
    ['a stream', () => streamed(BYTES.subarray(0, 100), BYTES.subarray(100))],
    ['a function that opens a stream', () => () => streamed(BYTES)],
  ])('is stored, named and downloaded as it was: %s', async (_, content) => {
    const part = await send(content(), 'a/b.bin');
    expect(part).toMatchObject({ sha256: hashOf(BYTES), size: BYTES.length, name: 'a/b.bin' });
    expect(sent.map(({ offset }) => offset)).toEqual([0, 5_250, 10_500]);
    await daemon.deliver({ id: 'm1', content: 'look', parts: [part] });
    expect(await received('demo', part.sha256)).toEqual(BYTES);
    await expect(received('other', part.sha256)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('continues after the daemon did not answer, and a piece that comes twice changes nothing (UPLOADS-1)', async () => {
    shortenWaits();
    const plain = pieces.send;
    const lost = new Set([2, 4]);
    const answerLost: Pieces['send'] = async (verb, body, options) => {
      const answer = await plain(verb, body, options);
      if (lost.has(sent.length)) throw new ParleyError('DAEMON_TIMEOUT', 'no answer');
      return answer;
    };
    pieces = { ...pieces, send: answerLost };
    expect(await send(BYTES)).toMatchObject({ sha256: hashOf(BYTES) });
    expect(sent.map(({ offset }) => offset)).toEqual([0, 5_250, 5_250, 10_500, 10_500]);
  });

  it('begins again where the daemon that had it ended, if it can be read again (CLIENT-FILES-2)', async () => {
    before = () => {
      if (sent.length === 2) void daemon.runtime.files.close();
    };
    const refused = send(() => streamed(BYTES));
    await expect(refused).rejects.toMatchObject({ code: 'BLOB_INCOMPLETE' });
    sent = [];
    before = () => undefined;
    const id = { upload: 'gone', offset: 5_250, data: 'AAAA', publisher: 'alice' };
    expect(await daemon.request('upload', id)).toEqual({ ok: true, body: { received: 0 } });
    let lost = true;
    const plain = pieces.send;
    const forgetting: Pieces['send'] = async (verb, body, options) => {
      if (lost && 'offset' in body && body.offset === 5_250) {
        lost = false;
        return { received: 0 } as never;
      }
      return plain(verb, { ...body, upload: lost ? 'up-2' : 'up-3' } as never, options);
    };
    pieces = { ...pieces, send: forgetting };
    expect(await send(() => streamed(BYTES))).toMatchObject({ sha256: hashOf(BYTES) });
    lost = true;
    await expect(send(streamed(BYTES))).rejects.toMatchObject({ code: 'BLOB_INCOMPLETE' });
  });

  it.each([
    ['another hash', { sha256: '0'.repeat(64), size: 3 }, 'BLOB_WRONG_HASH'],
    ['another size', { sha256: hashOf('abc'), size: 4 }, 'BLOB_INCOMPLETE'],
  ])('with %s than it says is refused, and its id can be used again', async (_, last, code) => {
    const piece = { upload: 'up-1', offset: 0, data: Buffer.from('abc').toString('base64') };
    expect(await daemon.request('upload', { ...piece, last })).toMatchObject({
      ok: false,
      refusal: { code },
    });
    const right = { sha256: hashOf('abc'), size: 3 };
    const answer = await daemon.request('upload', { ...piece, last: right });
    expect(answer).toMatchObject({ ok: true, body: { received: 3, file: { size: 3 } } });
    expect(await daemon.request('upload', { ...piece, last: right })).toEqual(answer); // its answer was lost
  });

  it('that announces more than is allowed is refused at its first piece', async () => {
    await expect(send(Buffer.alloc(1_000_001))).rejects.toMatchObject({ code: 'BLOB_TOO_LARGE' });
    expect(sent).toHaveLength(1);
  });

  it('that is empty is refused', async () => {
    await expect(send(Buffer.alloc(0))).rejects.toMatchObject({ code: 'BLOB_EMPTY' });
  });

  it('belongs to its publisher (UPLOADS-2)', async () => {
    const piece = { upload: 'up-1', offset: 0, data: 'AAAA' };
    expect(await daemon.request('upload', piece, 'alice')).toMatchObject({ body: { received: 3 } });
    expect(await daemon.request('upload', { ...piece, offset: 3 }, 'bob')).toMatchObject({
      body: { received: 0 },
    });
    const asAlice = await daemon.request('upload', { ...piece, publisher: 'alice' }, 'bob');
    expect(asAlice).toMatchObject({ ok: false, refusal: { code: 'FORBIDDEN' } });
    const read = await daemon.request(
      'blob',
      { conversation: 'demo', sha256: hashOf(''), publisher: 'alice' },
      'bob',
    );
    expect(read).toMatchObject({ ok: false, refusal: { code: 'FORBIDDEN' } });
  });

  it('is forgotten ten minutes after its last piece', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const piece = { upload: 'up-1', offset: 0, data: 'AAAA', publisher: 'alice' };
    await daemon.request('upload', piece);
    await vi.advanceTimersByTimeAsync(9 * 60_000);
    expect(await daemon.request('upload', { ...piece, offset: 3 })).toMatchObject({ body: { received: 6 } });
    await vi.advanceTimersByTimeAsync(11 * 60_000);
    expect(await daemon.request('upload', { ...piece, offset: 6 })).toMatchObject({ body: { received: 0 } });
  });

  it.each([
    ['data that is no base64', { data: 'a b' }, 'data'],
    ['too large a piece', { data: 'A'.repeat(700_000) }, 'data'],
    ['a hash that is none', { last: { sha256: 'x', size: 1 } }, 'last.sha256'],
  ])('with %s is refused by the field', async (_, more, field) => {
    const answer = await daemon.request('upload', { upload: 'u', offset: 0, data: '', ...more });
    expect(answer).toMatchObject({ ok: false, refusal: errorWith('BAD_REQUEST', field) });
  });

  it('is read in pieces that fit the answer, from any offset', async () => {
    const part = await send(BYTES);
    await daemon.deliver({ id: 'm1', content: 'look', parts: [part] });
    const piece = (more: object) =>
      daemon.request('blob', { conversation: 'demo', sha256: part.sha256, ...more });
    const data = BYTES.subarray(11_000, 11_007).toString('base64');
    expect(await piece({ offset: 11_000, limit: 7 })).toMatchObject({ body: { data, size: BYTES.length } });
    expect(await piece({ offset: 99_999 })).toMatchObject({ body: { data: '' } });
  });

  it('that arrives damaged is refused at its end', async () => {
    const plain = pieces.send;
    const damaging: Pieces['send'] = async (verb, body, options) => ({
      ...(await plain(verb, body, options)),
      ...(verb === 'blob' && { data: 'AAAA', size: 3 }),
    });
    const part = await send(BYTES);
    await daemon.deliver({ id: 'm1', content: 'look', parts: [part] });
    pieces = { ...pieces, send: damaging };
    await expect(received('demo', part.sha256)).rejects.toMatchObject({ code: 'BLOB_DAMAGED' });
  });
});

describe('the pieces of an upload, where daemons share the work (SHARED-API-8)', () => {
  const asked: string[] = [];
  function daemonNamed(daemon: string, others: readonly string[], answers = true) {
    const api = {
      async handle() {
        asked.push(daemon);
        return { ok: true, body: { received: 0 } };
      },
    };
    const ask = async (to: string) => {
      asked.push(to);
      return answers
        ? { kind: 'answered', body: { answer: { ok: true, body: { received: 0 } } } }
        : { kind: 'silent' };
    };
    return new SharedApi(
      api as never,
      { daemon, monitor: { others }, router: { ask } } as unknown as SharedApiParts,
    );
  }
  const piece = (upload: string) => ({ endpoint: 'upload', publisher: 'alice', body: { upload, offset: 0 } });

  it('all go to one daemon, whichever is asked, and different uploads to different daemons', async () => {
    asked.length = 0;
    const [one, two] = [daemonNamed('d1', ['d2']), daemonNamed('d2', ['d1'])];
    for (let at = 0; at < 20; at++) for (const daemon of [one, two]) await daemon.handle(piece(`u${at}`));
    const pairs = Array.from({ length: 20 }, (_, at) => asked.slice(2 * at, 2 * at + 2));
    expect(pairs.every(([first, second]) => first === second)).toBe(true);
    expect(new Set(asked)).toEqual(new Set(['d1', 'd2']));
  });

  it('are refused as to be repeated while that daemon does not answer', async () => {
    const daemon = daemonNamed('d1', ['d2'], false);
    const answers = await Promise.all(Array.from({ length: 20 }, (_, at) => daemon.handle(piece(`u${at}`))));
    const refused = answers.filter(({ ok }) => !ok);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]).toMatchObject({ refusal: errorWith('TIMEOUT', 'd2', 'again') });
  });
});
