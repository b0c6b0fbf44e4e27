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

  it.each([
    [
      'without indexes',
      [
        calls(call({ id: 'i' }, 'a', '{"x":')),
        calls(call({}, undefined, '1}')),
        calls(call({ id: 'j' }, 'b', '{"y":2}')),
      ],
    ],
    [
      'with the index 0 for all',
      [
        calls(call({ index: 0, id: 'i' }, 'a', '{"x":1}')),
        calls(call({ index: 0, id: 'j' }, 'b', '{"y":2}')),
      ],
    ],
    [
      'with the index 0 and the id call_0 for all',
      [
        calls(call({ index: 0, id: 'call_0' }, 'a', '{"x":1}')),
        calls(call({ index: 0, id: 'call_0' }, 'b', '{"y":2}')),
      ],
    ],
    [
      'with one id for two indexes',
      [
        calls(
          call({ index: 0, id: 'call_0' }, 'a', '{"x":1}'),
          call({ index: 1, id: 'call_0' }, 'b', '{"y":2}'),
        ),
      ],
    ],
    ['with no ids at all', [calls(call({ index: 0 }, 'a', '{"x":1}'), call({ index: 1 }, 'b', '{"y":2}'))]],
    [
      'with id and name in every piece',
      ['{"x"', ':1}', '']
        .map((piece) => calls(call({ index: 0, id: 'i' }, 'a', piece)))
        .concat(calls(call({ index: 1, id: 'j' }, 'b', '{"y":2}'))),
    ],
    [
      'with another id in every piece',
      [
        calls(call({ index: 0, id: 'r1' }, 'a', '{"x":')),
        calls(call({ index: 0, id: 'r2' }, undefined, '1}')),
        calls(call({ index: 1, id: 'r3' }, 'b', '{"y":2}')),
      ],
    ],
    [
      'repeated whole by their index',
      [
        calls(call({ index: 0, id: 'i' }, 'a', '{"x"')),
        calls(call({ index: 0 }, undefined, ':1}')),
        calls(call({ index: 1, id: 'j' }, 'b', '{"y":2}')),
        calls(call({ index: 0, id: 'i' }, 'a', '{"x":1}'), call({ index: 1, id: 'j' }, 'b', '{"y":2}')),
      ],
    ],
    [
      'repeated whole in a message',
      [
        calls(call({ index: 0, id: 'i' }, 'a', '{"x":1}'), call({ index: 1, id: 'j' }, 'b', '{"y":2}')),
        event({
          choices: [
            {
              message: { tool_calls: [call({ id: 'i' }, 'a', '{"x":1}'), call({ id: 'j' }, 'b', '{"y":2}')] },
            },
          ],
        }),
      ],
    ],
    [
      'with their arguments as objects',
      [
        calls(
          { index: 0, function: { name: 'a', arguments: { x: 1 } } },
          { index: 1, function: { name: 'b', arguments: { y: 2 } } },
        ),
      ],
    ],
  ])('two tool calls are separate when they come %s', (_, pieces) => {
    const { toolCalls } = answerOf(...pieces, finish);
    expect(toolCalls).toMatchObject([A, B]);
    expect(toolCalls.every((toolCall) => toolCall.id !== '')).toBe(true);
  });

  it('two equal tool calls in one chunk are separate', () => {
    const same = call({ index: 0, id: 'call_0' }, 'a', '{"x":1}');
    expect(answerOf(calls(same, same), finish).toolCalls.length).toBe(2);
  });

  it('a tool call that is repeated under another index with the same id, name and arguments is one', () => {
    const one = call({ index: 0, id: 'i' }, 'a', '{"x":1}');
    const again = call({ index: 1, id: 'i' }, 'a', '{"x":1}');
    const inPieces = [
      calls(one),
      calls(call({ index: 1, id: 'i' }, 'a', '{"x"')),
      calls(call({ index: 1 }, undefined, ':1}')),
    ];
    for (const events of [[calls(one, again)], [calls(one), calls(again)], inPieces]) {
      expect(answerOf(...events, finish).toolCalls).toEqual([{ id: 'i', name: 'a', arguments: '{"x":1}' }]);
    }
  });

  it.each([
    ['arguments', call({ index: 1, id: 'i' }, 'a', '{"x":2}')],
    ['name', call({ index: 1, id: 'i' }, 'b', '{"x":1}')],
    ['id', call({ index: 1, id: 'j' }, 'a', '{"x":1}')],
  ])('two tool calls that differ in their %s are separate (L10)', (_, other) => {
    const one = call({ index: 0, id: 'i' }, 'a', '{"x":1}');
    expect(answerOf(calls(one, other), finish).toolCalls).toHaveLength(2);
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
