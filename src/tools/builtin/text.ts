/** Converts bytes to text. Invalid parts are replaced; no character is cut in two. */

/** The longest prefix of at most `length` bytes that ends where a UTF-8 character ends. */
export function wholeCharacters(bytes: Buffer, length: number): number {
  if (length >= bytes.length) return bytes.length;
  for (let end = length; end > length - 4 && end > 0; end -= 1) {
    if (!isContinuation(bytes[end])) return end;
  }
  return length; // not UTF-8
}

/** Where the first whole character begins. */
export function firstCharacter(bytes: Buffer): number {
  let start = 0;
  while (start < 3 && isContinuation(bytes[start])) start += 1;
  return start;
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

const ESCAPE = String.fromCharCode(0x1b);
const BELL = String.fromCharCode(0x07);
/**
 * Terminal escape sequences: CSI, then strings (OSC etc., which end at the end of their line at the latest), then
 * short ones. No two parts of a pattern match the same character, so matching is linear.
 */
const SEQUENCES = new RegExp(
  [
    String.raw`(?:${ESCAPE}\[|\u009b)[0-?]*[ -/]*[@-~]?`,
    String.raw`${ESCAPE}[\]PX^_][^${BELL}${ESCAPE}\n]*(?:${BELL}|${ESCAPE}\\)?`,
    `${ESCAPE}[ -/]*[0-~]?`,
  ].join('|'),
  'g',
);
/** Control characters except tab and line feed. */
const CONTROLS = /(?![\t\n])\p{Cc}/gu;

/** Plain text without escape sequences and control characters, with `\
` as line end. */
export function plainText(bytes: Buffer): string {
  return bytes
    .toString('utf8')
    .replaceAll(SEQUENCES, '')
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll(CONTROLS, '\ufffd');
}
