import { inspect } from 'node:util';

const HIDDEN = '[secret]';

/** A value that no log, error or JSON ever shows. Whoever sends it to its owner calls `reveal()`. */
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
