import { inspect } from 'node:util';
import { sha256Of } from '../../kernel/index.ts';

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

/** What must not be shown of a configuration: each secret in it, and each value of a variable. */
export function secretValuesOf(setting: unknown): string[] {
  if (setting instanceof Secret) return [setting.reveal()];
  if (typeof setting !== 'object' || setting === null) return [];
  return Object.values(setting).flatMap(secretValuesOf);
}

/** A digest of a setting with the values of its secrets: equal for equal settings. */
export function settingDigest(setting: unknown): string {
  const text = JSON.stringify(
    [setting],
    function revealing(this: Record<string, unknown>, key, shown: unknown) {
      const value = this[key];
      return value instanceof Secret ? value.reveal() : shown;
    },
  );
  return sha256Of(text);
}
