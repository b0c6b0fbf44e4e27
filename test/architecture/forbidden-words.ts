import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Expressions that code may not contain; comments are not searched. */

/** With one of these the core would not be a pure function. */
export const IMPURE: readonly RegExp[] = [
  /\bDate\.now\b/,
  /\bnew Date\(\s*\)/,
  /\bDate\(\s*\)/,
  /\bMath\.random\b/,
  /\bperformance\.now\b/,
  /\bprocess\b\s*[.[]/,
  /\bglobalThis\b/,
  /\bcrypto\b\s*[.[]/,
  /\bset(Timeout|Interval|Immediate)\b/,
  /\bqueueMicrotask\b/,
  /\bfetch\(/,
  /\bconsole\b\s*[.[]/,
  /\bawait\s+import\(/,
  /['"]node:/,
];

export const ENVIRONMENT: readonly RegExp[] = [
  /\bprocess\.env\b/,
  /\bprocess\[['"]env['"]\]/,
  /\{[^}]*\benv\b[^}]*\}\s*=\s*process\b/,
  /\bimport\b[^;]*\benv\b[^;]*from 'node:process'/,
];

export interface SourceText {
  /** Relative to the folder that was read. */
  readonly path: string;
  readonly code: string;
}

export async function readSources(folder: string): Promise<SourceText[]> {
  const paths = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith('.ts')).sort();
  return Promise.all(
    paths.map(async (path) => ({ path, code: withoutComments(await readFile(join(folder, path), 'utf8')) })),
  );
}

/** `path: word` for each use. */
export function usesOf(words: readonly RegExp[], sources: readonly SourceText[]): string[] {
  return sources.flatMap(({ path, code }) =>
    words.flatMap((word) => {
      const all = new RegExp(word.source, `${word.flags}g`);
      return [...code.matchAll(all)].map(([found]) => `${path}: ${found}`);
    }),
  );
}

/** Strings and templates are kept: a `//` in a URL begins no comment. */
export function withoutComments(code: string): string {
  const token = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;
  return code.replaceAll(token, (found) => (found.startsWith('/') ? ' ' : found));
}
