import { inspect } from 'node:util';

const HIDDEN = '[secret]';

/** A value that logs, errors and JSON never show. Call `reveal()` only to send it to its service. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toJSON(): string {
    return HIDDEN;
  }

  toString(): string {
    return HIDDEN;
  }

  [inspect.custom](): string {
    return HIDDEN;
  }
}
