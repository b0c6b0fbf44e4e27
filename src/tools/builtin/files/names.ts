import { hashInPath } from '../../../conversation/index.ts';
import { cut, ParleyError } from '../../../kernel/index.ts';

/** Parses the paths that models write, without access to files. */

export type Named =
  /** In the project: path components, none of them `.` or `..`; empty: the project's folder. */
  | { readonly kind: 'project'; readonly names: readonly string[]; readonly asFolder: boolean }
  /** A stored output of an entry. Its text names the conversation in which it was written. */
  | { readonly kind: 'output'; readonly owner: string; readonly entry: string }
  /** A file that a message of this conversation names, by the beginning of its hash. */
  | { readonly kind: 'blob'; readonly hash: string };

const OUTPUTS = '@state/logs/tool-results/';
const OUTPUT = /^([A-Za-z0-9_-]{1,128})\/([A-Za-z0-9_-]{1,128})\.json$/;
const HINT = 'write @project/ and the way from there, such as @project/src/main.ts';

export function pathRefused(path: string, why: string, hint?: string): ParleyError {
  return new ParleyError(
    'PATH_REFUSED',
    `${quoted(path)}: ${why}`,
    hint === undefined ? undefined : { hint },
  );
}

/** The error in the form of a path below an alias, with the correct form; null: valid. */
export function pathFault(path: string): string | null {
  if (!path.startsWith('@')) return null; // `parsePath` refuses it
  const parts = path.split('/');
  const isFolder = parts.length > 1 && parts.at(-1) === '';
  const names = isFolder ? parts.slice(0, -1) : parts;
  if (!names.some((name) => name === '' || name === '.' || name === '..')) return null;
  const clean: string[] = [];
  for (const name of names) {
    if (name === '..') clean.pop();
    else if (name !== '' && name !== '.') clean.push(name);
  }
  const why = 'a path holds no ".", no ".." and no empty name';
  if (clean[0] !== parts[0]) return `${why}; ${HINT}`;
  return `${why}; write ${quoted(`${clean.join('/')}${isFolder ? '/' : ''}`)}`;
}

/** Throws PATH_REFUSED for anything but a path below an alias. */
export function parsePath(path: string): Named {
  if (path.includes('\0')) throw pathRefused(path, 'a path holds no null byte');
  const parts = path.split('/');
  const fault = pathFault(path);
  if (fault !== null) throw pathRefused(path, fault);
  if (parts[0] === '@state') return output(path);
  if (parts[0] === '@blob') return blob(path);
  if (parts[0] !== '@project') throw pathRefused(path, 'not a path that tools may use', HINT);
  const asFolder = parts.length > 1 && parts.at(-1) === '';
  return { kind: 'project', names: asFolder ? parts.slice(1, -1) : parts.slice(1), asFolder };
}

function output(path: string): Named {
  const [, owner, entry] = OUTPUT.exec(path.startsWith(OUTPUTS) ? path.slice(OUTPUTS.length) : '') ?? [];
  if (owner === undefined || entry === undefined) {
    throw pathRefused(path, `only ${OUTPUTS}<conversation>/<entry>.json can be read there`);
  }
  return { kind: 'output', owner, entry };
}

function blob(path: string): Named {
  const hash = hashInPath(path);
  if (hash !== null) return { kind: 'blob', hash };
  throw pathRefused(path, 'no file of a message', 'write @blob/ and the digits that its line shows');
}

/** For messages and lists: one line without control characters, of limited length. */
export function quoted(path: string): string {
  return path.length > 300 ? `${JSON.stringify(cut(path, 300))}…` : JSON.stringify(path);
}

/** A file name for a list: names may contain line breaks and escape sequences. */
export function printable(name: string): string {
  return /[\p{Cc}\u2028\u2029]/u.test(name) ? JSON.stringify(name) : name;
}

/** For tools that walk folders or write: `@state` and `@blob` are refused. */
export function projectNames(path: string): readonly string[] {
  const named = parsePath(path);
  if (named.kind === 'project') return named.names;
  const what = named.kind === 'blob' ? 'files of messages' : 'stored outputs';
  throw pathRefused(path, `${what} can only be read, with fs_read`);
}
