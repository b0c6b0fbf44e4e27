import type { Environment } from '../problems/environment.ts';
import type { KeyPath } from '../problems/problems.ts';
import { isMapping } from './yaml-file.ts';

/** `${NAME}`; written `$${NAME}` it stays as it is. */
const REFERENCE = /\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}/g;

export interface Substitution {
  readonly path: KeyPath;
  /** The text as it stands in the file: what may be shown (G3). */
  readonly written: string;
  /** Variables that are not set. */
  readonly missing: readonly string[];
}

/** Replaces `${NAME}` in every value, never in a key, and says where. Changes nothing in place. */
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
  let replaced = false;
  const text = written.replaceAll(REFERENCE, (reference, escaped: string, name: string) => {
    if (escaped) return reference.slice(1);
    replaced = true;
    const value = env[name];
    if (value === undefined) missing.push(name);
    return value ?? '';
  });
  if (replaced) found.push({ path, written, missing });
  return text;
}
