/** Only where another server begins: a password may hold a comma. */
const SEPARATOR = /\s*,\s*(?=[A-Za-z]+:\/\/|[A-Za-z0-9.-]+(?::\d+)?\s*(?:,|$))/;

/** URLs (or plain `HOST:PORT`s) as a list, or in one text with commas; each once, in order. */
export function splitUrls(urls: string | readonly string[]): string[] {
  const all = (typeof urls === 'string' ? [urls] : urls).flatMap((text) => text.trim().split(SEPARATOR));
  return [...new Set(all.filter((text) => text !== ''))];
}
