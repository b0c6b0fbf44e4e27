import { ParleyError } from './errors.ts';

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

/**
 * Refuses a stream whose subjects differ from `wanted` only in their prefix. Prefixes that differ only in case, or in `.` and
 * `_`, share stream names, and each daemon would remove the other's subjects.
 */
export function refuseOtherPrefix(stream: string, subjects: readonly string[], wanted: string): void {
  const tail = /\.[a-z]+(\.\*)*$/.exec(wanted)?.[0] ?? wanted;
  const other = subjects.find((subject) => subject !== wanted && subject.endsWith(tail));
  if (other === undefined || subjects.includes(wanted)) return;
  const [theirs, ours] = [other, wanted].map((subject) => subject.slice(0, -tail.length));
  throw new ParleyError(
    'STREAM_CONFIG_CONFLICT',
    `stream ${stream} belongs to the subject prefix ${theirs}, not to ${ours}; nothing was changed`,
    {
      hint: `set subjectPrefix to ${theirs} to use this stream, or to a prefix that differs not only in case`,
    },
  );
}

/** The settings in which a stream differs from what is required, in words. Servers omit settings that are off. */
export function streamDifferences(seen: object, wanted: object): string[] {
  const found: Record<string, unknown> = { ...seen };
  const isOff = (value: unknown) => value === false || value === 0;
  return Object.entries(wanted)
    .filter(([at, value]) => {
      const now = found[at] ?? (isOff(value) ? value : undefined);
      return JSON.stringify(now) !== JSON.stringify(value);
    })
    .map(([at, value]) => `${at} is ${JSON.stringify(found[at])}, must be ${JSON.stringify(value)}`);
}

export function streamConflict(
  seen: object,
  wanted: { readonly name: string },
  cause?: unknown,
): ParleyError {
  const fields = streamDifferences(seen, wanted).join('; ');
  return new ParleyError(
    'STREAM_CONFIG_CONFLICT',
    `stream ${wanted.name} has the wrong configuration: ${fields}`,
    { hint: `back up and delete stream ${wanted.name}, or choose another subjectPrefix`, cause },
  );
}
