import type { Environment } from '../problems/environment.ts';
import type { KeyPath, Problem } from '../problems/problems.ts';
import { isMapping, type YamlSource } from './yaml-file.ts';

/** `${NAME}`; `$${NAME}` is an escape for it. */
const REFERENCE = /\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

export interface Substitution {
  readonly path: KeyPath;
  /** The text in the file, which may be shown (PROBLEMS-3). */
  readonly written: string;
  /** The variables that are set, with their values. */
  readonly used: readonly (readonly [name: string, value: string])[];
  /** Variables that are not set. */
  readonly missing: readonly string[];
}

/** Returns a copy with `${NAME}` replaced in every value, never in a key. Adds each replacement to `found`. */
export function substitute(
  data: unknown,
  env: Environment,
  found: Substitution[],
  path: KeyPath = [],
): unknown {
  if (typeof data === 'string') return substituteText(data, env, found, path);
  if (Array.isArray(data)) return data.map((value, place) => substitute(value, env, found, [...path, place]));
  if (!isMapping(data)) return data;
  const entries = Object.entries(data);
  return Object.fromEntries(
    entries.map(([key, value]) => [key, substitute(value, env, found, [...path, key])]),
  );
}

function substituteText(written: string, env: Environment, found: Substitution[], path: KeyPath): string {
  const missing: string[] = [];
  const used: [string, string][] = [];
  let replaced = false;
  const text = written.replaceAll(REFERENCE, (reference, escaped: string, name: string) => {
    if (escaped) return reference.slice(1);
    replaced = true;
    const value = env[name];
    if (value === undefined) missing.push(name);
    else used.push([name, value]);
    return value ?? '';
  });
  if (replaced) found.push({ path, written, used, missing });
  return text;
}

/** The problem of a value that names a variable which is not set. */
export function missingVariable(
  { locate }: YamlSource,
  { path, written, missing }: Pick<Substitution, 'path' | 'written' | 'missing'>,
): Problem {
  const names = missing.join(', ');
  return {
    source: locate(path),
    key: path,
    seen: `${written}, and ${names} is not set`,
    expected: `the variable ${names} in the environment or in .env`,
  };
}
