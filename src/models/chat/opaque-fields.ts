import type { OpaqueFields } from '../../agents/model-port.ts';
import { isReadable, isRecord, isShallow, type JsonRecord } from '../../kernel/index.ts';

/**
 * Collects the fields of a message or a call that the protocol does not name: signatures, encrypted reasoning.
 *
 * OPAQUE-FIELDS-1 A field that arrives whole is kept as it is. Pieces of a stream are joined: texts are concatenated, objects
 *    are merged, and items of a list are joined if they are pieces of one item.
 * OPAQUE-FIELDS-2 Empty values say nothing. A field that not every reader could read again is left out.
 */
export class OpaqueCollector {
  readonly #known: ReadonlySet<string>;
  readonly #fields = new Map<string, unknown>();

  constructor(known: ReadonlySet<string>) {
    this.#known = known;
  }

  /** `isPiece`: texts and lists continue what came before; otherwise they replace it. */
  push(source: JsonRecord, isPiece: boolean): void {
    for (const [name, value] of Object.entries(source)) {
      if (this.#known.has(name) || isNothing(value) || !isShallow(value)) continue;
      const before = this.#fields.get(name);
      this.#fields.set(name, isPiece ? joined(before, value) : replaced(before, value));
    }
  }

  /** Undefined: there are none. */
  fields(): OpaqueFields | undefined {
    const kept = [...this.#fields].filter(([name, value]) => isReadable([name, value]));
    return kept.length === 0 ? undefined : Object.fromEntries(kept);
  }
}

/** Fields of a message that the protocol names. Those that only answer are not part of a request. */
export const ANSWER_FIELDS: ReadonlySet<string> = new Set([
  ...['role', 'content', 'reasoning_content', 'reasoning', 'refusal', 'tool_calls', 'tool_call_id'],
  ...['function_call', 'name', 'annotations', 'audio'],
]);

/** The same of a call; `function` may have more, too. */
export const ANSWERED_CALL_FIELDS: ReadonlySet<string> = new Set([
  'index',
  'id',
  'type',
  'name',
  'arguments',
]);

function isNothing(value: unknown): boolean {
  if (value === null || value === '' || value === false) return true;
  return typeof value === 'object' && Object.values(value as object).length === 0;
}

function joined(before: unknown, piece: unknown): unknown {
  if (Array.isArray(piece)) return joinedItems(Array.isArray(before) ? before : [], piece);
  return typeof before === 'string' && typeof piece === 'string' ? before + piece : replaced(before, piece);
}

function replaced(before: unknown, value: unknown): unknown {
  return isRecord(before) && isRecord(value) ? merged(before, value) : value;
}

/** Into `before`, which is the collector's own. The later value of each field counts. */
function merged(before: JsonRecord, piece: JsonRecord): JsonRecord {
  const fields: Record<string, unknown> = before;
  for (const [name, value] of Object.entries(piece)) {
    if (name === '__proto__') continue; // would not be a field
    if (!isNothing(value) || fields[name] === undefined) fields[name] = replaced(fields[name], value);
  }
  return fields;
}

/** Only the newest items can continue: comparing all of them would take quadratic time. */
const COMPARED = 64;

/** Into `items`, which is the collector's own. */
function joinedItems(items: unknown[], pieces: readonly unknown[]): unknown[] {
  for (const piece of pieces) {
    const newest = items.slice(-COMPARED);
    const item = isRecord(piece) ? newest.findLast((known) => continues(piece, known)) : undefined;
    if (isRecord(item) && isRecord(piece)) grow(item, piece);
    else items.push(piece);
  }
  return items;
}

/** By index, type and id, as far as they are given. Without an index only an unsigned text can continue. */
function continues(piece: JsonRecord, item: unknown): boolean {
  if (!isRecord(item)) return false;
  const isSame = (name: string) => (piece[name] ?? item[name]) === (item[name] ?? piece[name]);
  if (!isSame('type') || !isSame('id')) return false;
  if (typeof piece.index === 'number') return piece.index === item.index;
  return (
    item.index === undefined &&
    !item.signature &&
    !piece.data &&
    GROWING.some((name) => typeof item[name] === 'string')
  );
}

/** Fields of an item that arrive in pieces. */
const GROWING: readonly string[] = ['text', 'thinking', 'summary', 'data'];

function grow(item: JsonRecord, piece: JsonRecord): void {
  const texts = GROWING.flatMap((name) => {
    const [before, more] = [item[name], piece[name]];
    return typeof before === 'string' && typeof more === 'string' ? [[name, before + more] as const] : [];
  });
  Object.assign(merged(item, piece), Object.fromEntries(texts));
}
