import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Words that code may not use, found by reading it with the comments taken out. */

/** What would make the core's answer depend on when, where or how often it is asked. */
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

/** `path: word`, once for each time that a word is used. */
export function usesOf(words: readonly RegExp[], sources: readonly SourceText[]): string[] {
  return sources.flatMap(({ path, code }) =>
    words.flatMap((word) => {
      const all = new RegExp(word.source, `${word.flags}g`);
      return [...code.matchAll(all)].map(([found]) => `${path}: ${found}`);
    }),
  );
}

/** Comments out, strings and templates kept as they are: a `//` in a URL begins no comment. */
export function withoutComments(code: string): string {
  const token = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g;
  return code.replaceAll(token, (found) => (found.startsWith('/') ? ' ' : found));
}
