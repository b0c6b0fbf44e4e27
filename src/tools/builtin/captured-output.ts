import { SHELL_HEAD_BYTES, SHELL_TAIL_BYTES } from './limits.ts';
import { firstCharacter, plainText, wholeCharacters } from './text.ts';

/** What a command says: the beginning and the end of it, however much it is, in bounded memory. */
export class CapturedOutput {
  private readonly head: Buffer[] = [];
  private headBytes = 0;
  private tail: Buffer[] = [];
  private tailBytes = 0;
  /** All bytes that came. */
  total = 0;

  add(chunk: Buffer): void {
    this.total += chunk.length;
    const room = SHELL_HEAD_BYTES - this.headBytes;
    if (room > 0) {
      this.head.push(chunk.subarray(0, room));
      this.headBytes += Math.min(room, chunk.length);
    }
    if (chunk.length > room) this.addToTail(chunk.subarray(Math.max(0, room)));
  }

  /** Plain text, with a line that says how much is missing in the middle. */
  text(): string {
    const head = Buffer.concat(this.head);
    const rest = Buffer.concat(this.tail);
    const left = this.total - head.length - Math.min(rest.length, SHELL_TAIL_BYTES);
    if (left <= 0) return plainText(Buffer.concat([head, rest]));
    const tail = rest.subarray(rest.length - SHELL_TAIL_BYTES);
    const beginning = plainText(head.subarray(0, wholeCharacters(head, head.length - 1)));
    const end = plainText(tail.subarray(firstCharacter(tail)));
    return `${beginning}\n[… ${left} bytes left out here …]\n${end}`;
  }

  private addToTail(chunk: Buffer): void {
    this.tail.push(chunk);
    this.tailBytes += chunk.length;
    // Shortened now and then, so that many small chunks cost no more than their bytes.
    if (this.tailBytes < 2 * SHELL_TAIL_BYTES) return;
    const all = Buffer.concat(this.tail);
    this.tail = [Buffer.from(all.subarray(all.length - SHELL_TAIL_BYTES))];
    this.tailBytes = SHELL_TAIL_BYTES;
  }
}
