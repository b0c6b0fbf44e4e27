import { createHash, type Hash } from 'node:crypto';
import type { WireMessage } from '../model-port.ts';
import { jsonElements } from './json-bytes.ts';

/**
 * The bytes of a request's body as they grow, message by message, and their hash.
 *
 * B1 They are the bytes that JSON.stringify would make of the whole.
 * B2 What was added is made into bytes and hashed once. A body is copied together once and then belongs to whoever
 *    asked for it, to be read: its beginning is kept for the next one.
 */
export class RequestBody {
  /** What was added, in order. */
  private pieces: Buffer[] = [];
  private readonly hash: Hash = createHash('sha256');
  private isEmpty = true;

  /** `start`: everything up to the bracket that opens the array of messages, included. */
  constructor(start: string) {
    this.append(Buffer.from(start));
  }

  /** Adds messages for good. */
  add(messages: readonly WireMessage[]): void {
    for (const bytes of elements(messages, this.isEmpty)) this.append(bytes);
    this.isEmpty &&= messages.length === 0;
  }

  /** The whole, with `last` behind what was added. */
  with(last: readonly WireMessage[]): { readonly body: Buffer; readonly hash: string } {
    const tail = Buffer.concat([...elements(last, this.isEmpty), Buffer.from(']}')]);
    const body = Buffer.concat([...this.pieces, tail]);
    this.pieces = [body.subarray(0, body.length - tail.length)];
    return { body, hash: this.hash.copy().update(tail).digest('hex') };
  }

  private append(added: Buffer): void {
    this.pieces.push(added);
    this.hash.update(added);
  }
}

/** Elements of the array of messages, each with the comma before it; the very first has none. */
function elements(messages: readonly WireMessage[], isStart: boolean): Buffer[] {
  const made = jsonElements(messages);
  const [first] = made;
  if (isStart && first) made[0] = first.subarray(1);
  return made;
}
