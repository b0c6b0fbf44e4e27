import ts from 'typescript';

/**
 * Compiles files several times with small changes. `texts` are files that replace those on disk, or exist only here.
 * Each other file is parsed once, and imports that a change does not touch are resolved once.
 */
export function createCompiler(options: ts.CompilerOptions) {
  const parsed = new Map<string, ts.SourceFile | undefined>();
  let last: ts.Program | undefined;
  return (roots: readonly string[], texts: ReadonlyMap<string, string>): ts.Program => {
    const host = ts.createCompilerHost(options);
    const { fileExists, getSourceFile, readFile } = host;
    host.fileExists = (path) => texts.has(path) || fileExists(path);
    host.readFile = (path) => texts.get(path) ?? readFile(path);
    host.getSourceFile = (path, languageVersion) => {
      const text = texts.get(path);
      if (text !== undefined) return ts.createSourceFile(path, text, languageVersion);
      if (!parsed.has(path)) parsed.set(path, getSourceFile(path, languageVersion));
      return parsed.get(path);
    };
    last = ts.createProgram(roots, options, host, last);
    return last;
  };
}
