import { ErrorCode, type JSONRPCMessage, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';

/** Parses a message. An unreadable answer becomes a failed answer; throws for anything else that is invalid. */
export function readMessage(given: unknown): JSONRPCMessage {
  return JSONRPCMessageSchema.safeParse(given).data ?? failedAnswer(given);
}

function failedAnswer(given: unknown): JSONRPCMessage {
  const { jsonrpc, id } = Object(given) as { readonly jsonrpc?: unknown; readonly id?: unknown };
  const isAnswer = ['result', 'error'].some((key) => Object.hasOwn(Object(given), key));
  if (jsonrpc !== '2.0' || typeof id !== 'number' || !isAnswer) throw new Error('a line is no message');
  const error = { code: ErrorCode.InternalError, message: 'the answer has no result that is an object' };
  return { jsonrpc, id, error };
}

/** Turns unreadable answers of an event stream into failures: the SDK would drop them, and their calls would wait. */
export function withReadableAnswers(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  let rest = '';
  const decoder = new TextDecoder();
  const lines = new TransformStream<Uint8Array, string>({
    transform(chunk, controller) {
      const [first = '', ...more] = decoder.decode(chunk, { stream: true }).split('\n');
      const found = [rest + first, ...more];
      rest = found.pop() ?? '';
      if (found.length > 0) controller.enqueue(found.map((line) => `${readableLine(line)}\n`).join(''));
    },
    flush: (controller) => controller.enqueue(rest + decoder.decode()),
  });
  return body.pipeThrough(lines).pipeThrough(new TextEncoderStream());
}

function readableLine(line: string): string {
  if (!line.startsWith('data:')) return line;
  try {
    const message = readMessage(JSON.parse(line.slice('data:'.length)));
    return 'error' in message ? `data: ${JSON.stringify(message)}` : line;
  } catch {
    return line;
  }
}

/** Maximum bytes of one message of a server. */
export const LONGEST_MESSAGE = 16 * 1024 * 1024;

/** The rest of the message is not read and the connection is closed: the start of the next message is unknown. */
export class MessageTooLarge extends Error {
  constructor() {
    super(`a message is longer than ${LONGEST_MESSAGE / 1024 / 1024} MiB`);
  }
}

const LF = 10;
const CR = 13;

/** Counts the bytes of the current event of a stream. */
export class EventSize {
  #size = 0;
  #isLineEmpty = true;
  #wasCr = false;

  /** Returns the largest size reached. */
  add(chunk: Uint8Array): number {
    let largest = 0;
    for (const byte of chunk) {
      this.#size += 1;
      if (this.#size > largest) largest = this.#size;
      if (byte === LF && this.#wasCr) this.#wasCr = false;
      else if (byte === LF || byte === CR) {
        if (this.#isLineEmpty) this.#size = 0;
        this.#isLineEmpty = true;
        this.#wasCr = byte === CR;
      } else {
        this.#isLineEmpty = false;
        this.#wasCr = false;
      }
    }
    return largest;
  }
}
