/** The name of an output, without its extension, and its source below `src`. */
type Entries = Readonly<Record<string, string>>;

export const PROGRAM: Entries;
export const LIBRARIES: Entries;
export const HAVE_EFFECTS: readonly string[];

interface BundleOptions {
  readonly root: string;
  readonly outDir: string;
}

export function bundleProgram(options: BundleOptions): Promise<unknown>;
export function bundleLibraries(options: BundleOptions): Promise<unknown>;
