import type { Request } from './context.ts';

/** What of a request has no effect, in headers of the answer. */

const UNUSED_HEADER = 'x-parley-unused';
/** The names in a message that mention no agent, for its sender. */
const UNKNOWN_MENTIONS_HEADER = 'x-parley-unknown-mentions';

/** Clients always send empty fields. */
export function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/** Names of fields come from the client; a header allows only printable ASCII. */
export function nameUnused(context: Request, names: readonly string[]): void {
  if (names.length === 0) return;
  const text = names.join(', ').replaceAll(/[^\x20-\x7e]/g, '?');
  context.header(UNUSED_HEADER, text.slice(0, 1_000));
}

export function nameUnknownMentions(context: Request, names: readonly string[] = []): void {
  if (names.length > 0) context.header(UNKNOWN_MENTIONS_HEADER, names.map(encodeURIComponent).join(', '));
}
