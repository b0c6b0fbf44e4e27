const BARE = String.raw`(?:[\w.-]+|\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\])(?::\d+)?`;
const BARE_SERVER = new RegExp(`^${BARE}$`);
/** A comma separates only before another server: a password may contain one. */
const SEPARATOR = new RegExp(String.raw`\s*,\s*(?=[A-Za-z]+:\/\/|${BARE}\s*(?:,|$))`);

/** `HOST` or `HOST:PORT`, without a scheme. */
export function isBareServer(text: string): boolean {
  return BARE_SERVER.test(text);
}

/** Servers (URLs or `HOST:PORT`), given as a list or separated by commas; each once, in order. */
export function splitUrls(urls: string | readonly string[]): string[] {
  const all = (typeof urls === 'string' ? [urls] : urls).flatMap((text) => text.trim().split(SEPARATOR));
  return [...new Set(all.filter((text) => text !== ''))];
}

/** The servers without users and passwords, separated by commas. */
export function urlWithoutSecrets(url: string | readonly string[]): string {
  return splitUrls(url)
    .map((one) => one.replace(/^([A-Za-z]+:\/\/)?.*@/, (_, scheme: string | undefined) => scheme ?? ''))
    .join(',');
}
