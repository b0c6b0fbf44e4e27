import {
  type AnsweredCall,
  MAX_TOOL_CALLS,
  type ModelDelta,
  type OpaqueFields,
} from '../../agents/model-port.ts';
import { isRecord, isShallow, type JsonRecord, MAX_DEPTH, parseJson, stringOf } from '../../kernel/index.ts';
import { ANSWERED_CALL_FIELDS, OpaqueCollector } from './opaque-fields.ts';

/**
 * Assembles the tool calls of an answer from their pieces. Providers differ in every detail:
 *
 * TOOL-CALLS-1 Positions are dense, in order of first appearance, whatever the provider's indexes are.
 * TOOL-CALLS-2 A piece belongs to the call with its index; without an index, to the call with its id, else to the newest call.
 * TOOL-CALLS-3 A piece with a function name starts a new call if its id differs from that call's id, or if that call's
 *    arguments are complete (some servers give every call the index 0 or the id `call_0`).
 * TOOL-CALLS-4 A complete call that is repeated in a later chunk counts once. Calls of one chunk are never repetitions.
 * TOOL-CALLS-5 The name is in one delta; the pieces of the arguments, concatenated, are the arguments.
 * TOOL-CALLS-6 A call with another index but the same id, name and arguments as an earlier call is a repetition. Calls
 *    that share an id and differ in anything else are distinct.
 * TOOL-CALLS-7 Pieces after the first call above `MAX_TOOL_CALLS` are ignored: each piece is compared with every call.
 */
export interface ToolCallAssembler {
  /** Reads the `tool_calls` of one chunk, valid or not. */
  push(toolCalls: unknown): ModelDelta[];
  calls(): AssembledCall[];
}

export interface AssembledCall extends AnsweredCall {
  readonly opaque?: OpaqueFields;
}

interface Growing {
  readonly position: number;
  readonly index: number | null;
  id: string;
  name: string;
  arguments: string;
  /** Number of its first chunk. */
  readonly chunk: number;
  readonly opaque: OpaqueCollector;
}

interface Piece {
  readonly index: number | null;
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly more: JsonRecord;
}

export function createToolCallAssembler(): ToolCallAssembler {
  const calls: Growing[] = [];
  let chunk = 0;

  function begin(piece: Piece): Growing {
    const opaque = new OpaqueCollector(ANSWERED_CALL_FIELDS);
    const place = { position: calls.length, index: piece.index };
    const call = { ...place, id: piece.id, name: '', arguments: '', chunk, opaque };
    calls.push(call);
    return call;
  }

  function isRepetition(piece: Piece): boolean {
    return calls.some(
      (call) =>
        call.chunk < chunk &&
        (piece.index === null || call.index === null || piece.index === call.index) &&
        (piece.id === '' || call.id === '' || piece.id === call.id) &&
        (piece.name === '' || piece.name === call.name) &&
        piece.arguments === call.arguments &&
        isWhole(call.arguments),
    );
  }

  /** The call that a piece continues, if any (TOOL-CALLS-2). The newest: several may share an index (TOOL-CALLS-3). */
  function ownerOf(piece: Piece): Growing | undefined {
    if (piece.index !== null) return calls.findLast((call) => call.index === piece.index);
    const named = piece.id === '' ? undefined : calls.findLast((call) => call.id === piece.id);
    return named ?? (piece.name === '' ? calls.at(-1) : undefined);
  }

  function startsNewCall(piece: Piece, owner: Growing): boolean {
    if (piece.name === '' || owner.name === '') return false;
    const otherId = piece.id !== '' && owner.id !== '' && piece.id !== owner.id;
    // A server that repeats id and name in every piece may end with an empty piece, which starts no call.
    const addsNothing = piece.arguments === '' && piece.name === owner.name;
    return otherId || (isWhole(owner.arguments) && !addsNothing);
  }

  function take(piece: Piece): ModelDelta[] {
    if (calls.length > MAX_TOOL_CALLS || isRepetition(piece)) return [];
    const owner = ownerOf(piece);
    const call = owner === undefined || startsNewCall(piece, owner) ? begin(piece) : owner;
    if (call.id === '') call.id = piece.id;
    call.opaque.push(piece.more, false);
    const isNamed = call.name === '' && piece.name !== '';
    if (isNamed) call.name = piece.name;
    call.arguments += piece.arguments;
    if (!isNamed && piece.arguments === '') return [];
    const delta = { type: 'tool_call_delta', position: call.position, delta: piece.arguments } as const;
    return [isNamed ? { ...delta, name: call.name } : delta];
  }

  return {
    push(toolCalls) {
      if (!Array.isArray(toolCalls)) return [];
      chunk += 1;
      return toolCalls.flatMap((item) => take(readPiece(item)));
    },
    calls: () =>
      calls.filter(isFirstReport).map((call) => {
        const opaque = call.opaque.fields();
        const id = call.id === '' ? `call_${call.position}` : call.id;
        return {
          id,
          name: call.name,
          arguments: call.arguments,
          ...(opaque === undefined ? {} : { opaque }),
        };
      }),
  };
}

function isFirstReport(call: Growing, at: number, calls: readonly Growing[]): boolean {
  const isReported = (before: Growing) =>
    before.id !== '' &&
    before.id === call.id &&
    before.index !== call.index &&
    before.name === call.name &&
    before.arguments === call.arguments;
  return !calls.slice(0, at).some(isReported);
}

function readPiece(item: unknown): Piece {
  const record = isRecord(item) ? item : {};
  const called = isRecord(record.function) ? record.function : {};
  return {
    index: typeof record.index === 'number' ? record.index : null,
    id: stringOf(record.id),
    name: stringOf(called.name),
    // Some servers send the arguments as an object instead of JSON text.
    arguments: isRecord(called.arguments) ? jsonOf(called.arguments) : stringOf(called.arguments),
    more: { ...record, function: withoutKnown(called) },
  };
}

function withoutKnown(called: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(called).filter(([name]) => !ANSWERED_CALL_FIELDS.has(name)));
}

/** Arguments nested too deeply become invalid JSON, so that the call is refused. */
function jsonOf(value: JsonRecord): string {
  return isShallow(value) ? JSON.stringify(value) : `[nested deeper than ${MAX_DEPTH} levels]`;
}

/** Arguments are one JSON object: once it is closed, they are complete. */
function isWhole(argumentsJson: string): boolean {
  return argumentsJson.trimEnd().endsWith('}') && isRecord(parseJson(argumentsJson));
}
