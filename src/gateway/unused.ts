/** Headers that tell the client what of its request has no effect. */

export const UNUSED_HEADER = 'x-parley-unused';

/** Clients always send empty fields. */
export function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/** The names in a message that mention no agent, for its sender. */
export const UNKNOWN_MENTIONS_HEADER = 'x-parley-unknown-mentions';

export function unknownMentionsHeader(names: readonly string[]): string {
  return names.map(encodeURIComponent).join(', ');
}

/** Names of fields come from the client; a header allows only printable ASCII. */
export function unusedHeader(names: readonly string[]): string {
  return names
    .join(', ')
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .slice(0, 1_000);
}
