import type { ModelDelta } from '../../../src/agents/model-port.ts';
import { ChatDecoder } from '../../../src/models/chat/decode.ts';
import { AnswerReader, type Decoder } from '../../../src/models/reader.ts';
import { chunk, event } from '../../support/fake-provider.ts';

export function bytesOf(...pieces: string[]): Uint8Array {
  return new TextEncoder().encode(pieces.join(''));
}

/** Reads bytes that are split at these places. */
export function read(
  bytes: Uint8Array,
  cuts: readonly number[] = [],
  isCut = false,
  decoder: Decoder = new ChatDecoder(),
) {
  const reader = new AnswerReader(decoder);
  const deltas: ModelDelta[] = [];
  let start = 0;
  for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
    deltas.push(...reader.push(bytes.slice(start, cut)));
    start = Math.max(start, cut);
  }
  const { deltas: last, result } = reader.end(isCut);
  return { deltas: [...deltas, ...last], result, partial: reader.answer.partial() };
}

export function answerOf(...pieces: string[]) {
  const { result } = read(bytesOf(...pieces));
  if (result.kind !== 'whole') throw new Error(`expected an answer, got ${JSON.stringify(result)}`);
  return result.answer;
}

export function faultOf(...pieces: string[]) {
  const { result } = read(bytesOf(...pieces));
  if (result.kind !== 'broken') throw new Error(`expected a fault, got ${JSON.stringify(result)}`);
  return result.fault;
}

export const call = (fields: object, name?: string, argumentsJson?: string): object => ({
  ...fields,
  function: {
    ...(name === undefined ? {} : { name }),
    ...(argumentsJson === undefined ? {} : { arguments: argumentsJson }),
  },
});
export const calls = (...toolCalls: object[]): string => chunk({ tool_calls: toolCalls });
export const DONE = event('[DONE]');
