/** Names the fields of a request that have no effect on its answer, so that the client learns of it. */

export const UNUSED_HEADER = 'x-parley-unused';

/** Clients always send empty fields. */
export function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/** Names of fields come from the client; a header allows only printable ASCII. */
export function unusedHeader(names: readonly string[]): string {
  return names
    .join(', ')
    .replaceAll(/[^\x20-\x7e]/g, '?')
    .slice(0, 1_000);
}
