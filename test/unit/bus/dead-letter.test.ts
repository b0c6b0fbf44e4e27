import fc from 'fast-check';
import type { JetStreamManager } from 'nats';
import { describe, expect, it } from 'vitest';
import {
  decodeDeadLetter,
  encodeDeadLetter,
  MAX_ORIGINAL_BYTES,
  repostOf,
} from '../../../src/bus/dead-letter.ts';
import { DeadLetterShare } from '../../../src/bus/nats/ingress/dead-letters.ts';
import type { DeadLetter } from '../../../src/bus/port.ts';
import { decodePost } from '../../../src/bus/post.ts';
import { anyCharacter } from '../../support/characters.ts';
import { bytes, recordingLog, text } from './support.ts';

const refusal = { code: 'MALFORMED_JSON', message: 'no JSON', hint: 'correct it' };
const origin = { id: 'm-1', ingress: { stream: 's1', sequence: 4 } };
const place = { sequence: 3, at: '2026-11-22T05:00:00.000Z', publisher: 'alice', conversation: 'demo' };

describe('a dead letter', () => {
  const letter = (original: Uint8Array) =>
    JSON.parse(text(encodeDeadLetter(refusal, original, origin, 1_000_000))) as {
      original: string;
      truncated?: true;
    };

  it('a dead letter contains code, reason, hint, id, sequence, size, and the whole body if it fits', () => {
    expect(letter(bytes('{oops'))).toEqual({
      reason: 'no JSON',
      code: 'MALFORMED_JSON',
      hint: 'correct it',
      id: 'm-1',
      ingress: { stream: 's1', sequence: 4 },
      size: 5,
      original: '{oops',
    });
  });

  it('a dead letter replaces bytes that are not UTF-8', () => {
    expect(letter(Uint8Array.of(0x61, 0xff, 0x62)).original).toBe('a\uFFFDb');
  });

  it('a dead letter keeps at most 128 KiB of the body and never half a character', () => {
    const { original, truncated } = letter(bytes(`x${'😀'.repeat(50_000)}`));
    expect(truncated).toBe(true);
    expect(bytes(original).length).toBeLessThanOrEqual(MAX_ORIGINAL_BYTES);
    expect(original).toMatch(/^x(😀)+$/u);
  });

  it('a dead letter fits any payload, even if escaping makes the body six times longer', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: anyCharacter, maxLength: 5_000 }),
        fc.integer({ min: 300, max: 4_000 }),
        (body, max) => {
          const encoded = encodeDeadLetter(refusal, bytes(body), origin, max);
          expect(encoded.length).toBeLessThanOrEqual(max);
          const read = decodeDeadLetter(place, encoded);
          expect(read).toMatchObject({ ...place, ...origin, size: bytes(body).length });
          expect(read.truncated ? body.startsWith(read.original) : read.original === body).toBe(true);
        },
      ),
    );
    const large = encodeDeadLetter(refusal, new Uint8Array(200_000), origin, 10_000);
    expect(large.length).toBeLessThanOrEqual(10_000);
  });

  it('a dead letter is parsed tolerantly, whatever version wrote it', () => {
    const older = bytes('{"reason":"no","code":"UNKNOWN_AGENT","original":"é","ingress":{"stream":1}}');
    expect(decodeDeadLetter(place, older)).toEqual({
      ...place,
      reason: 'no',
      code: 'UNKNOWN_AGENT',
      original: 'é',
      size: 2,
    });
    for (const other of ['null', '7', '[]', '', '{', '{"original":7}']) {
      expect(decodeDeadLetter(place, bytes(other))).toMatchObject({ code: 'UNREADABLE', original: other });
    }
  });
});

describe('reposting a dead letter', () => {
  const letter = (original: string, more: Partial<DeadLetter> = {}): DeadLetter => ({
    ...place,
    code: 'UNKNOWN_AGENT',
    reason: 'there is no agent',
    size: bytes(original).length,
    ...{ original, ...origin },
    ...more,
  });
  const reposted = (from: DeadLetter) => {
    const repost = repostOf(from, 'PARLEY_IN');
    if (!repost.ok) throw new Error(repost.refusal.message);
    const names = { publisher: 'alice', conversation: 'demo', messageId: null };
    const decoded = decodePost({ ...names, body: repost.body, fallbackId: repost.id });
    return decoded.ok ? decoded.post : decoded.refusal;
  };

  it('a dead letter is reposted as the same message under the same id, in any form (DEAD-LETTER-2)', () => {
    expect(reposted(letter('plain words'))).toMatchObject({ id: 'm-1', content: 'plain words' });
    expect(reposted(letter('{"content":"x","to":["dev"]}'))).toMatchObject({ id: 'm-1', to: ['dev'] });
    expect(reposted(letter('{"content":"x","id":"own"}'))).toMatchObject({ id: 'own', content: 'x' });
  });

  it('a dead letter without an id gets one that each retry derives again (DEAD-LETTER-2)', () => {
    const { id: _, ingress: __, ...old } = letter('words');
    expect(reposted(old)).toEqual(reposted(old));
    expect(reposted(old)).toMatchObject({ id: expect.stringMatching(/^dead-3-/) });
  });

  it('a dead letter with an id is reposted byte for byte', () => {
    const body = '{ "id":"own", "content":"x", "meta":{"n":12345678901234567890} }';
    expect(repostOf(letter(body), 'PARLEY_IN')).toEqual({ ok: true, body: Buffer.from(body), id: 'm-1' });
  });

  it.each<[string, Partial<DeadLetter>, string, RegExp]>([
    ['cut', { truncated: true, size: 200_000 }, 'DEAD_LETTER_CUT', /nats stream get PARLEY_IN 4/],
    [
      'of a daemon that kept no place, and cut',
      { truncated: true, ingress: undefined },
      'DEAD_LETTER_CUT',
      /its sender/,
    ],
    ['no JSON', { original: '{oops', code: 'MALFORMED_JSON' }, 'NOT_RETRYABLE', /dead show 3/],
    ['not UTF-8', { code: 'INVALID_UTF8' }, 'NOT_RETRYABLE', /dead show 3/],
    ['of a name that no subject holds', { code: 'INVALID_NAME' }, 'NOT_RETRYABLE', /dead show 3/],
    ['none of ours', { code: 'UNREADABLE' }, 'NOT_RETRYABLE', /dead show 3/],
  ])('a dead letter that is %s is not reposted (H3)', (_, more, code, hint) => {
    const repost = repostOf(letter('words', more), 'PARLEY_IN');
    expect(repost).toMatchObject({ ok: false, refusal: { code, hint: expect.stringMatching(hint) } });
  });
});

function share(maxBytes: number) {
  const purges: unknown[] = [];
  const manager = {
    streams: {
      info: async () => ({ config: { max_bytes: maxBytes } }),
      purge: async (_: string, options: unknown) => ({ purged: purges.push(options) }),
    },
  } as unknown as JetStreamManager;
  return { of: new DeadLetterShare({ manager, stream: 'DEAD', log: recordingLog().log }), purges };
}

describe('the share of a publisher in the dead-letter stream', () => {
  it("the share is enforced after each 4 MiB of a publisher's letters, and keeps the newest that fit a quarter of the stream", async () => {
    const { of, purges } = share(64 * 1_024 ** 2);
    for (let letter = 0; letter < 31; letter++) await of.stored('parley.dead.mallory.*', 131_072);
    expect(purges).toEqual([]);
    await of.stored('parley.dead.mallory.*', 131_072);
    expect(purges).toEqual([{ filter: 'parley.dead.mallory.*', keep: 96 }]);
    await of.stored('parley.dead.mallory.*', 131_072);
    expect(purges).toHaveLength(1);
  });

  it('the share counts the letters of each publisher separately', async () => {
    const { of, purges } = share(64 * 1_024 ** 2);
    for (let letter = 0; letter < 31; letter++) {
      await of.stored('parley.dead.alice.*', 131_072);
      await of.stored('parley.dead.bob.*', 131_072);
    }
    expect(purges).toEqual([]);
  });

  it('the share is not enforced in a stream without a limit in bytes', async () => {
    const { of, purges } = share(-1);
    await of.stored('parley.dead.mallory.*', 8 * 1_024 ** 2);
    expect(purges).toEqual([]);
  });
});
