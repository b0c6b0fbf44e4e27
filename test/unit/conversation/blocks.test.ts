import { describe, expect, it } from 'vitest';
import { type Blocks, blocksOf } from '../../../src/conversation/index.ts';

const ANSWER = { content: 'one two', reasoning: 'hm', tool_calls: [{}, {}] };
const bound = (list: Blocks['list']) => ({ ...ANSWER, blocks: { boundTo: 'm', list } });
const PLAIN = [
  { type: 'reasoning', text: 'hm' },
  { type: 'text', text: 'one two' },
  { type: 'call', position: 0 },
  { type: 'call', position: 1 },
];
const INTERLEAVED = bound([
  { type: 'text', length: 3 },
  { type: 'call', opaque: { id: 'x' } },
  { type: 'reasoning', length: 2, opaque: { signature: 's' } },
  { type: 'text', length: 4 },
  { type: 'call' },
]);

describe('the blocks of an answer', () => {
  it('are one of reasoning, one of text, and the calls, if the entry lists none', () => {
    expect(blocksOf(ANSWER, 'm')).toEqual(PLAIN);
    expect(blocksOf({ content: null }, 'm')).toEqual([]);
  });

  it('have the order of the model and what is opaque in them, for that model', () => {
    expect(blocksOf(INTERLEAVED, 'm')).toEqual([
      { type: 'text', text: 'one' },
      { type: 'call', position: 0, opaque: { id: 'x' } },
      { type: 'reasoning', text: 'hm', opaque: { signature: 's' } },
      { type: 'text', text: ' two' },
      { type: 'call', position: 1 },
    ]);
  });

  it.each([undefined, 'another'])('are plain for another reader: %s', (reader) => {
    expect(blocksOf(INTERLEAVED, reader)).toEqual(PLAIN);
  });

  it('are plain once a text was shortened, since its signature no longer fits', () => {
    expect(blocksOf({ ...INTERLEAVED, content: 'one' }, 'm')).toEqual([
      PLAIN[0],
      { type: 'text', text: 'one' },
      ...PLAIN.slice(2),
    ]);
  });

  it('put texts that the list does not name first, and calls last', () => {
    expect(blocksOf(bound([{ type: 'opaque', opaque: { a: 1 } }]), 'm')).toEqual([
      ...PLAIN.slice(0, 2),
      { type: 'opaque', opaque: { a: 1 } },
      ...PLAIN.slice(2),
    ]);
  });
});
