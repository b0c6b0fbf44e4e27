/** The name of an output, without `.js`, and its source below `src`. */
type Entries = Readonly<Record<string, string>>;

export const PROGRAM: Entries;
export const LIBRARIES: Entries;

export function bundle(options: {
  readonly root: string;
  readonly outDir: string;
  readonly entries: Entries;
}): Promise<unknown>;
