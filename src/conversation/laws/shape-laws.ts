import { authorSchema, type Entry, entrySchema } from '../log/entry.ts';

/** The kinds of entries that this version knows. */
const KNOWN: ReadonlySet<unknown> = new Set(
  entrySchema.options.flatMap(({ shape }) => [...shape.type.values]),
);

/**
 * What any log must hold before its laws can be looked at: entries, each as its kind is made. Of a kind that a newer
 * minor version added, only what every entry has.
 */
export function checkShapes(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry, at) => {
    const fault = KNOWN.has(entry.type) ? shapeFault(entry) : baseFault(entry);
    return fault === null ? [] : [`entry ${at} is no whole entry: ${fault}`];
  });
}

function shapeFault(entry: Entry): string | null {
  const [issue] = entrySchema.safeParse(entry).error?.issues ?? [];
  return issue ? `${issue.path.join('.')}: ${issue.message}` : null;
}

function baseFault({ type, author }: Entry): string | null {
  if (typeof type !== 'string') return 'type: it is no text';
  return authorSchema.safeParse(author).success ? null : 'author: it is none';
}
