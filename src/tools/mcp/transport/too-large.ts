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
