/** The name of an output, without `.js`, and its source below `src`. */
export const LIBRARIES: Readonly<Record<string, string>>;

interface BundleOptions {
  readonly root: string;
  readonly outDir: string;
}

export function bundleProgram(options: BundleOptions): Promise<unknown>;
export function bundleLibraries(options: BundleOptions): Promise<unknown>;
