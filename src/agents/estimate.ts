import type { WireMessage, WireTool } from './model-port.ts';

/** What a request's parts come to in tokens, estimated; what providers put around each message and each call included. */

const PER_MESSAGE = 10;
const PER_CALL = 50;

export function messageTokens(message: WireMessage): number {
  let tokens = PER_MESSAGE + textTokens(message.content ?? '');
  tokens += textTokens(message.reasoning_content ?? '');
  for (const call of message.tool_calls ?? []) {
    tokens += PER_CALL + textTokens(call.function.name) + textTokens(call.function.arguments);
  }
  return tokens;
}

export function toolTokens(tool: WireTool): number {
  return PER_CALL + textTokens(JSON.stringify(tool));
}

/** Code units that are counted at a time; behind them is room for what fills up the last eight. */
const ROOM = 65_536;
const bytes = Buffer.from(new ArrayBuffer(2 * ROOM + 16));
const units = new Uint16Array(bytes.buffer);
const pairs = new Int32Array(bytes.buffer);
/** The bits of two neighbouring code units that no ASCII has, as they lie in this machine's memory. */
const NOT_ASCII = pairOf('\uff80\uff80');

function pairOf(text: string): number {
  bytes.write(text, 'utf16le');
  return pairs[0] ?? 0;
}

/**
 * What `estimateTokens` says, in a fifth of its time: code units are looked at as they lie in memory, eight together as
 * long as all are ASCII.
 */
export function textTokens(text: string): number {
  let others = 0;
  let halves = 0;
  for (let from = 0; from < text.length; from += ROOM) {
    const written =
      bytes.write(from === 0 ? text : text.slice(from, from + ROOM), 0, 2 * ROOM, 'utf16le') / 2;
    units.fill(0, written, written + 7); // ASCII: the last eight may have been cut
    for (let at = 0; 2 * at < written; at += 4) {
      if ((fourPairs(at) & NOT_ASCII) === 0) continue;
      for (let unit = 2 * at; unit < 2 * at + 8; unit++) {
        others += isOther(units[unit] ?? 0);
        halves += isSecondHalf(units[unit] ?? 0);
      }
    }
  }
  return Math.ceil((text.length - others) / 4) + others - halves;
}

/** The bits that any of four pairs has. */
function fourPairs(at: number): number {
  return (pairs[at] ?? 0) | (pairs[at + 1] ?? 0) | (pairs[at + 2] ?? 0) | (pairs[at + 3] ?? 0);
}

/** 1 for a code unit beyond ASCII, else 0; without a branch, which mixed text would make slow. */
function isOther(unit: number): number {
  return (unit + 0xff80) >>> 16;
}

/** 1 for the second half of a surrogate pair, else 0. */
function isSecondHalf(unit: number): number {
  return ((unit ^ 0xdc00) - 0x400) >>> 31;
}
