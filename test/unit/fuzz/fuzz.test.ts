import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodePost } from '../../../src/bus/index.ts';
import { parseScript } from '../../../src/models/scripted/script.ts';
import { scanLog } from '../../../src/persistence/jsonl/log/recovery.ts';
import { runs } from '../../support/runs.ts';
import { load, loadYaml } from '../config/folder.ts';
import { read } from '../models/reading.ts';
import { batch, entry, logBytes } from '../persistence/support.ts';
import { AGENTS, CONFIGURATIONS, POSTS, SCRIPTS, STREAMS } from './corpus.ts';
import { mangled } from './mangle.ts';
import { refusalBy } from './refusal.ts';

/** Whatever comes from outside: it is taken as what it is, or refused in words; nothing else is ever thrown. */

const LONG_MS = 120_000;

describe('a post', () => {
  const decode = (body: Buffer) =>
    decodePost({ body, messageId: null, fallbackId: 'in-1-x', publisher: 'alice', conversation: 'demo' });
  const check = (body: Buffer) => {
    const decoded = decode(body);
    if (!decoded.ok) {
      expect(decoded.refusal).toMatchObject({ code: expect.stringMatching(/^[A-Z_0-9]+$/) });
      expect(JSON.stringify(decoded.refusal).length).toBeLessThan(4_000);
      return;
    }
    const { publisher: _, conversation: __, author, ...post } = decoded.post;
    const again = decode(Buffer.from(JSON.stringify(post)));
    expect(again).toMatchObject({ ok: true, post });
    expect(author.id.startsWith('alice')).toBe(true);
  };

  it.each(POSTS.map((post) => [post.slice(0, 40), post]))(
    'a post such as %j is read or refused',
    (_, post) => {
      check(Buffer.from(post));
    },
  );

  it(
    'a mangled post is read or refused, and a read one is written again without loss',
    () => {
      fc.assert(fc.property(mangled(POSTS), check), { numRuns: runs(500) });
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    },
    LONG_MS,
  );
});

describe('a log', () => {
  const entries = [
    [entry(0, 'grüße 👋')],
    batch(1, 3),
    [entry(4, '","sum":"00000000"}\n', { left: 2, sum: 'x' })],
    batch(5, 2),
  ];
  const whole = logBytes(entries);
  const originals = entries.flat();

  it(
    'a mangled log gives only entries that were written, at their index',
    () => {
      fc.assert(
        fc.property(mangled([whole]), (bytes) => {
          const verdict = scanLog(bytes);
          if (verdict.kind === 'damaged') return;
          expect(verdict.entries).toEqual(originals.slice(0, verdict.entries.length));
          expect(verdict.bytes).toBeLessThanOrEqual(bytes.length);
        }),
        { numRuns: runs(2_000) },
      );
    },
    LONG_MS,
  );

  it('a log with any byte changed loses no whole batch silently', () => {
    for (let at = 0; at < whole.length; at += 1) {
      const bytes = Buffer.from(whole);
      bytes[at] = (bytes[at] ?? 0) ^ 0x20;
      const verdict = scanLog(bytes);
      expect(verdict.kind, `byte ${at}`).not.toBe('whole');
      if (verdict.kind === 'torn') expect(verdict.entries).toEqual(originals.slice(0, 5));
    }
  });
});

describe('an answer of a provider', () => {
  const settle = (bytes: Uint8Array, cuts: readonly number[] = []) => {
    const { result, deltas, partial } = read(bytes, cuts);
    if (result.kind === 'broken') {
      expect(result.fault.code).toMatch(/^[A-Z_0-9]+$/);
      expect(result.fault.message.length).toBeLessThan(4_000);
    }
    return { result, deltas, partial };
  };

  it.each(STREAMS.map((stream) => [stream.slice(0, 60), stream]))(
    'a provider stream such as %j is an answer or a fault, wherever it is split',
    (_, stream) => {
      const bytes = Buffer.from(stream);
      const plain = settle(bytes);
      const step = Math.max(1, Math.floor(bytes.length / (bytes.length > 5_000 ? 20 : 400)));
      for (let cut = 0; cut <= bytes.length; cut += step) {
        expect(settle(bytes, [cut]).result).toEqual(plain.result);
        settle(bytes.subarray(0, cut)); // broken off there
      }
    },
    LONG_MS,
  );

  it(
    'a mangled provider stream is the same answer or fault wherever it is split',
    () => {
      const places = fc.array(fc.nat(2_000), { maxLength: 6 });
      fc.assert(
        fc.property(mangled(STREAMS.slice(0, 5)), places, (bytes, cuts) => {
          const within = cuts.map((cut) => Math.min(cut, bytes.length));
          expect(settle(bytes, within)).toEqual({ ...settle(bytes), deltas: expect.anything() });
        }),
        { numRuns: runs(1_000) },
      );
    },
    LONG_MS,
  );
});

describe('a file of the configuration', () => {
  const refusedAs = async (work: () => unknown) => {
    const refusal = await refusalBy(work);
    if (refusal) expect(refusal.code).toBe('CONFIG_INVALID');
  };
  const configuration = (text: string) => refusedAs(() => loadYaml(text, { env: { KEY: 'k' } }));
  const agent = (text: string) => refusedAs(() => load({ 'agents/dev.md': text }));
  const script = (text: string) => refusedAs(() => parseScript('script.yaml', text));
  const short = (texts: readonly string[]) => texts.filter((text) => text.length < 1_000);

  it.each([
    ['parley.yaml', configuration, CONFIGURATIONS, 60],
    ['an agent', agent, AGENTS, 60],
    ['a script', script, SCRIPTS, 200],
  ] as const)(
    'a configuration file (%s) is accepted or refused with a message, mangled or not',
    async (_, check, seeds, sample) => {
      for (const seed of seeds) await check(seed);
      await fc.assert(
        fc.asyncProperty(mangled(short(seeds)), (bytes) => check(bytes.toString())),
        { numRuns: runs(sample) },
      );
    },
    LONG_MS,
  );
});
