import { crc32 } from 'node:zlib';
import { checkLaws, type Entry } from '../../src/conversation/index.ts';

/**
 * Checks the text of a `log.jsonl` against the laws of any log, by the text alone. Returns one sentence for each
 * violation; a sound log has none.
 */
export function checkLog(text: string): string[] {
  const faults: string[] = [];
  if (!text.endsWith('\n')) faults.push('the last line is not finished');
  const entries = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line, at) => parseLine(line, at, faults));
  return [...faults, ...checkLaws(entries)];
}

/** The entries of a log file, without a check of the checksums. */
export function parseLog(text: string): Entry[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Entry);
}

/** Each line ends with the CRC-32 of the text before it. */
function parseLine(line: string, at: number, faults: string[]): Entry {
  const seal = /,"sum":"([0-9a-f]{8})"\}$/.exec(line);
  const body = Buffer.from(line.slice(0, seal?.index ?? 0));
  const wanted = crc32(body).toString(16).padStart(8, '0');
  if (seal?.[1] !== wanted) faults.push(`line ${at}: checksum ${seal?.[1]}, expected ${wanted}`);
  return JSON.parse(line) as Entry;
}
