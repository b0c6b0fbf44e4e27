import { describe, expect, it } from 'vitest';
import { chunk, event } from '../../support/fake-provider.ts';
import { answerOf, bytesOf, call, calls, read } from './reading.ts';

describe('tool calls in a stream', () => {
  const finish = chunk({}, 'tool_calls');
  const A = { name: 'a', arguments: '{"x":1}' };
  const B = { name: 'b', arguments: '{"y":2}' };

  it('concurrent tool calls are assembled by their index, and their names are sent once', () => {
    const { deltas, result } = read(
      bytesOf(
        calls(call({ index: 1, id: 'i' }, 'a', ''), call({ index: 2, id: 'j' }, 'b', '')),
        calls(call({ index: 2 }, undefined, '{"y"'), call({ index: 1 }, 'a', '{"x":')),
        calls(call({ index: 1, id: 'i' }, 'a', '1}'), call({ index: 2 }, undefined, ':2}')),
        finish,
      ),
    );
    expect(result).toMatchObject({
      answer: {
        toolCalls: [
          { id: 'i', ...A },
          { id: 'j', ...B },
        ],
      },
    });
    expect(deltas.filter((delta) => 'name' in delta)).toEqual([
      { type: 'tool_call_delta', position: 0, name: 'a', delta: '' },
      { type: 'tool_call_delta', position: 1, name: 'b', delta: '' },
    ]);
  });

  /** The call `a` or `b`, whole or with a piece of its arguments, and a later piece of one. */
  const a = (given: object, piece = '{"x":1}') => call(given, 'a', piece);
  const b = (given: object) => call(given, 'b', '{"y":2}');
  const more = (given: object, piece: string) => call(given, undefined, piece);
  const [first, second] = [{ index: 0 }, { index: 1 }];
  const WHOLE = calls(a({ ...first, id: 'i' }), b({ ...second, id: 'j' }));
  const MESSAGE = event({ choices: [{ message: { tool_calls: [a({ id: 'i' }), b({ id: 'j' })] } }] });
  const OBJECTS = calls(
    { index: 0, function: { name: 'a', arguments: { x: 1 } } },
    { index: 1, function: { name: 'b', arguments: { y: 2 } } },
  );
  const EACH_PIECE = ['{"x"', ':1}', ''].map((piece) => calls(a({ ...first, id: 'i' }, piece)));

  it.each([
    ['without indexes', [calls(a({ id: 'i' }, '{"x":')), calls(more({}, '1}')), calls(b({ id: 'j' }))]],
    ['with the index 0 for all', [calls(a({ ...first, id: 'i' })), calls(b({ ...first, id: 'j' }))]],
    [
      'with the index 0 and the id call_0 for all',
      [calls(a({ ...first, id: 'call_0' })), calls(b({ ...first, id: 'call_0' }))],
    ],
    ['with one id for two indexes', [calls(a({ ...first, id: 'call_0' }), b({ ...second, id: 'call_0' }))]],
    ['with no ids at all', [calls(a(first), b(second))]],
    ['with id and name in every piece', [...EACH_PIECE, calls(b({ ...second, id: 'j' }))]],
    [
      'with another id in every piece',
      [
        calls(a({ ...first, id: 'r1' }, '{"x":')),
        calls(more({ ...first, id: 'r2' }, '1}')),
        calls(b({ ...second, id: 'r3' })),
      ],
    ],
    [
      'repeated whole by their index',
      [
        calls(a({ ...first, id: 'i' }, '{"x"')),
        calls(more(first, ':1}')),
        calls(b({ ...second, id: 'j' })),
        WHOLE,
      ],
    ],
    ['repeated whole in a message', [WHOLE, MESSAGE]],
    ['with their arguments as objects', [OBJECTS]],
  ])('two tool calls are separate when they come %s', (_, pieces) => {
    const { toolCalls } = answerOf(...pieces, finish);
    expect(toolCalls).toMatchObject([A, B]);
    expect(toolCalls.every((toolCall) => toolCall.id !== '')).toBe(true);
  });

  it('two equal tool calls in one chunk are separate', () => {
    const same = a({ index: 0, id: 'call_0' });
    expect(answerOf(calls(same, same), finish).toolCalls.length).toBe(2);
  });

  it('a tool call that is repeated under another index with the same id, name and arguments is one', () => {
    const one = a({ index: 0, id: 'i' });
    const again = a({ index: 1, id: 'i' });
    const inPieces = [calls(one), calls(a({ index: 1, id: 'i' }, '{"x"')), calls(more({ index: 1 }, ':1}'))];
    for (const events of [[calls(one, again)], [calls(one), calls(again)], inPieces]) {
      expect(answerOf(...events, finish).toolCalls).toEqual([{ id: 'i', name: 'a', arguments: '{"x":1}' }]);
    }
  });

  it.each([
    ['arguments', a({ index: 1, id: 'i' }, '{"x":2}')],
    ['name', call({ index: 1, id: 'i' }, 'b', '{"x":1}')],
    ['id', a({ index: 1, id: 'j' })],
  ])('two tool calls that differ in their %s are separate (L10)', (_, other) => {
    expect(answerOf(calls(a({ index: 0, id: 'i' }), other), finish).toolCalls).toHaveLength(2);
  });

  it('two equal tool calls without an id are separate, as nothing says that they are one', () => {
    const events = [0, 1].map((index) => calls(call({ index }, 'a', '{"x":1}')));
    expect(answerOf(...events, finish).toolCalls).toHaveLength(2);
  });

  it('arguments that are not JSON are kept as the model wrote them', () => {
    expect(answerOf(calls(call({ index: 0, id: 'i' }, 'a', '{"x":')), finish).toolCalls).toMatchObject([
      { arguments: '{"x":' },
    ]);
  });
});
