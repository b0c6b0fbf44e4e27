import { describe, expect, it } from 'vitest';
import {
  decodeAcceptance,
  decodeAgentMessage,
  decodeOffer,
  decodeResults,
  isAbort,
} from '../../../src/bus/index.ts';

const offer = { turnId: 't', epoch: 3 };
const bytes = (value: unknown) =>
  new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));
const decode = (value: unknown) => decodeAgentMessage(bytes(value), offer);

describe("the events of a remote agent's turn", () => {
  it('an event is accepted with turn and epoch, and without', () => {
    for (const about of [offer, {}, { turnId: 't' }]) {
      expect(decode({ ...about, type: 'final', content: 'x' })).toMatchObject({ message: { content: 'x' } });
    }
  });

  it.each([
    [{ epoch: 2, type: 'final', content: 'x' }, 'stale'],
    [{ turnId: 'u', type: 'final', content: 'x' }, 'stale'],
    [{ epoch: 2, type: 'nonsense' }, 'stale'],
    [{ type: 'progress', percent: 3 }, 'unknown'],
  ])('the event %j is %s', (value, kind) => {
    expect(decode(value)).toEqual({ kind });
  });

  it.each([
    ['{', 'not a JSON object'],
    ['[]', 'not a JSON object'],
    [{ type: 'final', content: 7 }, 'content'],
    [{ type: 'final', parts: [{ type: 'file', sha256: 'abc' }] }, 'parts.0.sha256'],
    [{ type: 'final', parts: [{ type: 'image', url: 'a' }] }, 'parts.0'],
    [{ type: 'tool_call', calls: [] }, 'calls'],
    [{ type: 'tool_call', calls: [{ name: '' }] }, 'calls.0.name'],
  ])('the event %j is refused with a reason', (value, why) => {
    expect(decode(value)).toMatchObject({ kind: 'invalid', reason: expect.stringContaining(why) });
  });

  it('a final may have parts; what it says of a file besides hash and name does not count', () => {
    const sha256 = 'ab'.repeat(32);
    const file = {
      type: 'file',
      sha256,
      name: 'a.png',
      mediaType: 'image/png',
      size: 7,
      width: 1,
      height: 1,
    };
    const parts = [{ type: 'text', text: 'look' }, file];
    expect(decode({ type: 'final', parts })).toMatchObject({
      message: {
        parts: [
          { type: 'text', text: 'look' },
          { type: 'file', sha256, name: 'a.png', mediaType: 'application/octet-stream', size: 0 },
        ],
      },
    });
  });

  it('the arguments of a call may be an object, a text, or missing', () => {
    const calls = [{ name: 'a', arguments: { x: 1 } }, { name: 'b', arguments: '{"y":2}' }, { name: 'c' }];
    expect(decode({ type: 'tool_call', calls })).toMatchObject({
      message: { calls: [{ arguments: '{"x":1}' }, { arguments: '{"y":2}' }, { arguments: '{}' }] },
    });
  });

  it('an answer with an invalid usage is kept', () => {
    const decoded = decode({ type: 'final', content: 'x', usage: { prompt_tokens: 1 } });
    expect(decoded).toMatchObject({ kind: 'message', message: { content: 'x', usage: undefined } });
  });

  it('a usage that is impossible is ignored', () => {
    for (const counts of [{ inputTokens: -1 }, { outputTokens: 1.5 }, { cachedInputTokens: -1 }]) {
      const usage = { inputTokens: 1, outputTokens: 1, ...counts };
      const decoded = decode({ type: 'final', content: 'x', usage });
      expect(decoded).toMatchObject({ kind: 'message', message: { content: 'x', usage: undefined } });
    }
  });

  it('a reported price is dropped, whatever it is', () => {
    const counts = { inputTokens: 1, outputTokens: 1 };
    for (const usd of [-1, 0.5]) {
      const decoded = decode({ type: 'final', content: 'x', usage: { ...counts, usd } });
      expect((decoded as { message?: { usage?: unknown } }).message?.usage).toEqual(counts);
    }
  });
});

describe('the messages around an offer', () => {
  it('the reply to an offer is an acceptance, a refusal, or unknown', () => {
    expect(decodeAcceptance(bytes({ accepted: true, instance: 'i' }))).toMatchObject({
      accepted: true,
      instance: 'i',
    });
    expect(decodeAcceptance(bytes({ accepted: false, reason: 'busy' }))).toMatchObject({ reason: 'busy' });
    expect(decodeAcceptance(bytes({ accepted: 'yes' }))).toBeNull();
    expect(decodeAcceptance(bytes('null'))).toBeNull();
  });

  it('an abort applies only to its own offer', () => {
    expect(isAbort(bytes({ type: 'abort', ...offer }), offer)).toBe(true);
    expect(isAbort(bytes({ type: 'abort', turnId: 't', epoch: 2 }), offer)).toBe(false);
    expect(isAbort(bytes('?'), offer)).toBe(false);
  });

  it('an offer or a result is accepted only if it is complete', () => {
    expect(decodeOffer(bytes({ conversation: 'c' }))).toMatchObject({ ok: false });
    expect(decodeResults(bytes({ results: [{ content: 'x' }] }))).toEqual({ results: [{ content: 'x' }] });
    expect(decodeResults(bytes({ results: [{}] }))).toBeNull();
  });
});
