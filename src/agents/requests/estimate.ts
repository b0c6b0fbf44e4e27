import type { WireMessage, WireTool } from '../model-port.ts';

/** Estimates the tokens of a request's parts, including what providers add to each message and each call. */

const PER_MESSAGE = 10;
const PER_CALL = 50;

export function messageTokens(message: WireMessage): number {
  let tokens = PER_MESSAGE + textTokens(message.content ?? '');
  tokens += textTokens(message.reasoning_content ?? '');
  for (const call of message.tool_calls ?? []) {
    tokens += PER_CALL + textTokens(call.function.name) + textTokens(call.function.arguments);
    tokens += opaqueTokens(call, CALL_FIELDS) + opaqueTokens(call.function, CALL_FIELDS);
  }
  return tokens + opaqueTokens(message, MESSAGE_FIELDS);
}

const MESSAGE_FIELDS = new Set(['role', 'content', 'reasoning_content', 'tool_calls', 'tool_call_id']);
const CALL_FIELDS = new Set(['id', 'type', 'function', 'name', 'arguments']);

function opaqueTokens(fields: object, known: ReadonlySet<string>): number {
  let tokens = 0;
  for (const [name, value] of Object.entries(fields))
    if (!known.has(name)) tokens += textTokens(JSON.stringify([name, value]));
  return tokens;
}

export function toolTokens(tool: WireTool): number {
  return PER_CALL + textTokens(JSON.stringify(tool));
}

/** Code units per pass. The buffer is larger, to fill up the last eight. */
const CHUNK = 65_536;
const bytes = Buffer.from(new ArrayBuffer(2 * CHUNK + 16));
const units = new Uint16Array(bytes.buffer);
const pairs = new Int32Array(bytes.buffer);
/** The bits of two neighbouring code units that are 0 in ASCII, in this machine's byte order. */
const NOT_ASCII = pairOf('\uff80\uff80');

function pairOf(text: string): number {
  bytes.write(text, 'utf16le');
  return pairs[0] ?? 0;
}

/**
 * The same as `estimateTokens`, five times as fast: reads code units from memory, eight at a time while all of
 * them are ASCII.
 */
export function textTokens(text: string): number {
  if (beginsInAscii(text) && Buffer.byteLength(text) === text.length) return Math.ceil(text.length / 4);
  let others = 0;
  let halves = 0;
  for (let from = 0; from < text.length; from += CHUNK) {
    const written =
      bytes.write(from === 0 ? text : text.slice(from, from + CHUNK), 0, 2 * CHUNK, 'utf16le') / 2;
    units.fill(0, written, written + 7); // ASCII: the last eight may have been cut
    for (let at = 0; 2 * at < written; at += 4) {
      if ((fourPairs(at) & NOT_ASCII) === 0) continue;
      for (let pair = at; pair < at + 4; pair++) {
        const both = pairs[pair] ?? 0;
        others += inPair(beyondAscii(both));
        halves += inPair(secondHalves(both));
      }
    }
  }
  return Math.ceil((text.length - others) / 4) + others - halves;
}

/** Non-ASCII text mostly has such a character early; `byteLength` would take as long as counting. */
function beginsInAscii(text: string): boolean {
  for (let at = Math.min(text.length, 128) - 1; at >= 0; at--) if (text.charCodeAt(at) > 0x7f) return false;
  return true;
}

/** The bits that are set in any of four pairs. */
function fourPairs(at: number): number {
  return (pairs[at] ?? 0) | (pairs[at + 1] ?? 0) | (pairs[at + 2] ?? 0) | (pairs[at + 3] ?? 0);
}

// Two neighbouring code units at once, without a branch, which would be slow on mixed text. The top bit of each half
// of the result is set if the test holds; no carry crosses the halves.
const LOW_BITS = 0x7fff_7fff;
const TOP_BITS = 0x8000_8000 | 0;

/** Not ASCII: a bit above the lowest seven is set. */
function beyondAscii(pair: number): number {
  return (((pair & LOW_BITS) + 0x7f80_7f80) | pair) & TOP_BITS;
}

/** Low surrogates: the six highest bits are those of DC00. */
function secondHalves(pair: number): number {
  const differing = (pair ^ 0xdc00_dc00) & 0xfc00_fc00;
  return ~(((differing & LOW_BITS) + LOW_BITS) | differing) & TOP_BITS;
}

function inPair(topBits: number): number {
  return ((topBits >>> 15) & 1) + (topBits >>> 31);
}
