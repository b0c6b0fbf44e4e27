import { describe, expect, it } from 'vitest';
import { createEventDecoder } from '../../../src/models/openai/event-stream.ts';

function eventsOf(...pieces: string[]) {
  const decoder = createEventDecoder();
  return [...pieces.flatMap((piece) => decoder.push(piece)), ...decoder.end()];
}

describe('server-sent events', () => {
  it.each(['\n', '\r\n', '\r'])(
    'events with line ends %j keep name and data together, wherever they are split',
    (lineEnd) => {
      const text =
        ': hello\nevent: error\ndata: one\ndata:two\nretry: 5\n\ndata\n\n\nevent: x\n\ndata: three'.replaceAll(
          '\n',
          lineEnd,
        );
      const events = [
        { name: 'error', data: 'one\ntwo' },
        { name: '', data: '' },
        { name: '', data: 'three' },
      ];
      expect(eventsOf(text)).toEqual(events);
      for (let cut = 0; cut <= text.length; cut += 1) {
        expect(eventsOf(text.slice(0, cut), text.slice(cut))).toEqual(events);
      }
      expect(eventsOf(...text)).toEqual(events);
    },
  );

  it('a long event keeps all its lines', () => {
    const lines = Array.from({ length: 2_500 }, (_, n) => `line ${n}`);
    const text = lines.map((line) => `data: ${line}\n`).join('');
    expect(eventsOf(text, '\n', text)).toEqual(Array(2).fill({ name: '', data: lines.join('\n') }));
  });

  it('an event is delivered as soon as it is complete', () => {
    const decoder = createEventDecoder();
    expect(decoder.push('data: a\n')).toEqual([]);
    expect(decoder.push('\ndata: b\n')).toEqual([{ name: '', data: 'a' }]);
  });
});
