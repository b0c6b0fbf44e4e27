import { expect, it } from 'vitest';
import { ChatDecoder } from '../../../src/models/chat/decode.ts';
import { createAnswerReader } from '../../../src/models/reader.ts';
import { chunk } from '../../support/fake-provider.ts';
import { bytesOf, call, calls, faultOf } from './reading.ts';

/** Read in quadratic time, these exceed the timeout of a test. */
it.each([
  ['blanks', ' ', 16_000_000],
  ['line breaks', '\n', 16_000_000],
  ['unfinished titles', '<title', 100_000],
  ['lines of one event', 'data: a\n', 1_000_000],
])('an answer that consists only of %s is read in linear time', (_what, part, count) => {
  const piece = Buffer.from(part.repeat(Math.min(count, 10_000)));
  const reader = createAnswerReader(new ChatDecoder());
  for (let read = 0; read < count; read += 10_000) reader.push(piece);
  expect(reader.end(false).result.kind).toBe('broken');
});

it('an answer of 200,000 calls of tools is read in time, and is not kept whole', () => {
  const reader = createAnswerReader(new ChatDecoder());
  for (let read = 0; read < 200; read++)
    reader.push(
      bytesOf(
        calls(...Array.from({ length: 1_000 }, (_, at) => call({ index: read * 1_000 + at }, 'a', '{}'))),
      ),
    );
  reader.push(bytesOf(chunk({}, 'tool_calls')));
  const { result } = reader.end(false);
  expect(result.kind === 'whole' && result.answer.toolCalls.length).toBe(257);
});

it('an HTML error page is reported with its title, which is cut if it is long', () => {
  expect(faultOf('<html><title>Bad gateway</title>').message).toContain('“Bad gateway”');
  expect(faultOf(`data: ${'x '.repeat(1_000_000)}\n\n`).message).toMatch(/: (x )+x?…/);
});
