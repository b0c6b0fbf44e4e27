const BARE = String.raw`(?:[\w.-]+|\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\])(?::\d+)?`;
const BARE_SERVER = new RegExp(`^${BARE}$`);
/** Only where another server begins: a password may hold a comma. */
const SEPARATOR = new RegExp(String.raw`\s*,\s*(?=[A-Za-z]+:\/\/|${BARE}\s*(?:,|$))`);

/** `HOST` or `HOST:PORT`, without a scheme. */
export function isBareServer(text: string): boolean {
  return BARE_SERVER.test(text);
}

/** URLs (or plain `HOST:PORT`s) as a list, or in one text with commas; each once, in order. */
export function splitUrls(urls: string | readonly string[]): string[] {
  const all = (typeof urls === 'string' ? [urls] : urls).flatMap((text) => text.trim().split(SEPARATOR));
  return [...new Set(all.filter((text) => text !== ''))];
}
