import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { decodeUtf8, errnoOf, messageOf } from '../../kernel/index.ts';
import type { Problems } from '../problems.ts';
import type { Environment } from '../schema/setting-sources.ts';

/**
 * Reads `.env` in the configuration folder, and in the working directory if the configuration folder is directly in it.
 *
 * DOTENV-1 A variable of the environment has priority, also if it is empty.
 * DOTENV-2 The variables are looked up by the configuration only. They do not become part of `process.env`, and no tool, MCP
 *          server or other program gets them.
 * DOTENV-3 Variables that decide which program runs, which folder is read or where a key of the environment is sent are
 *          ignored, with a notice.
 */

export const ENVIRONMENT_FILE = '.env';

export interface EnvironmentFile {
  readonly file: string;
  /** The variables of the file that were looked up and used, sorted. */
  readonly names: readonly string[];
}

interface Dotenv {
  readonly env: Environment;
  /** What was used so far. */
  files(): EnvironmentFile[];
}

interface Folders {
  /** The configuration. */
  readonly directory: string;
  readonly workingDirectory: string;
  /** DOTENV-3 */
  readonly ignored: readonly string[];
}

export function withDotenv(env: Environment, folders: Folders, problems: Problems): Dotenv {
  const merged: Record<string, string | undefined> = { ...env };
  const used = new Map<string, Set<string>>();
  for (const file of filesOf(folders)) {
    const text = readEnvironmentFile(file, problems);
    if (text === null) continue;
    const names = new Set<string>();
    used.set(file, names);
    for (const [name, value] of Object.entries(parseEnv(text))) {
      if (Object.hasOwn(merged, name)) continue; // DOTENV-1
      if (folders.ignored.includes(name)) {
        problems.notices.push(`${file}: ${name} is ignored there; set it in the environment`);
        continue;
      }
      const get = () => {
        names.add(name);
        return value;
      };
      Object.defineProperty(merged, name, { enumerable: true, get });
    }
  }
  const files = () => [...used].map(([file, names]) => ({ file, names: [...names].sort() }));
  return { env: merged, files };
}

/** The first file has priority. */
function filesOf({ directory, workingDirectory }: Folders): string[] {
  if (!existsSync(directory)) return [];
  const isInside = dirname(directory) === resolve(workingDirectory);
  return [join(directory, ENVIRONMENT_FILE), ...(isInside ? [join(workingDirectory, ENVIRONMENT_FILE)] : [])];
}

/** Null: it is missing, or it was reported. */
function readEnvironmentFile(file: string, problems: Problems): string | null {
  try {
    const text = decodeUtf8(readFileSync(file));
    const line = text === null ? null : firstInvalidLine(text);
    if (text === null || line !== null) problems.add({ source: file, ...faultOf(line) });
    else return text;
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT')
      problems.add({ source: file, seen: messageOf(error), expected: 'a readable file' });
  }
  return null;
}

/** Never shows the line, which can contain a secret. */
function faultOf(line: number | null) {
  if (line === null) return { seen: 'bytes that are not UTF-8', expected: 'a text in UTF-8' };
  return {
    seen: `line ${line} assigns no variable, or a quote in it is not closed`,
    expected: 'NAME=value in each line; comments begin with #',
  };
}

const BLANK = String.raw`[^\S\n]*`;
const QUOTED = ['"', "'", '`'].map((quote) => `${quote}[^${quote}]*${quote}[^\\n]*`).join('|');
const ASSIGNMENT = `(?:export${BLANK} )?[A-Za-z_][\\w.-]*${BLANK}=${BLANK}(?:${QUOTED}|[^"'\`\\s][^\\n]*)?`;
const LINE = new RegExp(`${BLANK}(?:#[^\\n]*|${ASSIGNMENT})?${BLANK}(?:\\n|$)`, 'y');

/** `parseEnv` skips what it does not understand. */
function firstInvalidLine(text: string): number | null {
  const pattern = new RegExp(LINE);
  while (pattern.lastIndex < text.length) {
    const start = pattern.lastIndex;
    if (!pattern.test(text)) return text.slice(0, start).split('\n').length;
  }
  return null;
}
