/** The log of the program; pino implements it. Fields never contain a secret. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Shorter values occur in ordinary words, so hiding them would reveal them. */
const SHORTEST = 4;
/** The same holds for these: hiding them would also break JSON. */
const WORDS: ReadonlySet<string> = new Set(['true', 'false', 'null']);

/** Replaces secret values in a text that is shown. */
export type HideValues = (text: string) => string;

/** Hides each value, also as it is written in a URL or in JSON, and the part of an HTTP header after its scheme. */
export function hideValues(values: Iterable<string>): HideValues {
  const forms = [...values]
    .flatMap((value) => [value, value.replace(/^(?:Bearer|Basic) /i, '')])
    .flatMap((value) => [value, encoded(value), JSON.stringify(value).slice(1, -1)])
    .filter((form) => form.length >= SHORTEST && !WORDS.has(form));
  if (forms.length === 0) return (text) => text;
  const longestFirst = [...new Set(forms)].sort((a, b) => b.length - a.length);
  const anyOf = new RegExp(longestFirst.map(literally).join('|'), 'g'); // one pass, however many there are
  return (text) => text.replace(anyOf, '[secret]');
}

/** As a part of a regular expression. */
function literally(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

/** In each text of a value, with its keys. Other objects than records and lists are kept. */
export function hideInside(hide: HideValues, value: unknown): unknown {
  if (typeof value === 'string') return hide(value);
  if (Array.isArray(value)) return value.map((one) => hideInside(hide, one));
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [hide(key), hideInside(hide, one)]));
}

function encoded(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    return value; // half a surrogate pair
  }
}
