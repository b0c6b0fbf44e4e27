import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import {
  expectationOf,
  isShallow,
  MAX_DEPTH,
  messageOf,
  PACKAGE,
  ParleyError,
  shown,
  valueAt,
} from '../../kernel/index.ts';
import {
  type LastPattern,
  placeholdersOf,
  type Rule,
  type Script,
  type ScriptData,
  scriptSchema,
} from './script.ts';

/** The default script, shipped with Parley: answers without an API key. */
const DEFAULT_SCRIPT = join(PACKAGE, 'config/scripts/team.yaml');

type Path = readonly PropertyKey[];
interface Problem {
  readonly path: Path;
  readonly seen: string;
  readonly expected: string;
}

/** Reads a script, by default the built-in one. Throws `CONFIG_INVALID` with file, key, value and expectation. */
export async function loadScript(path?: string): Promise<Script> {
  const file = path ?? DEFAULT_SCRIPT;
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw new ParleyError('CONFIG_INVALID', `the script ${file} cannot be read: ${messageOf(cause)}`, {
      hint: 'models.<name>.script is a YAML file, relative to the folder of the configuration',
      cause,
    });
  }
  return parseScript(file, text);
}

export function parseScript(file: string, text: string): Script {
  const data = parseYaml(file, text);
  const parsed = scriptSchema.safeParse(data);
  if (!parsed.success)
    refuse(
      file,
      parsed.error.issues.flatMap((issue) => describe(issue, data)),
    );
  const problems: Problem[] = [];
  const rules = parsed.data.rules.map((rule, index) => compile(rule, ['rules', index], problems));
  if (problems.length > 0) refuse(file, problems);
  return { file, rules };
}

function parseYaml(file: string, text: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const error = document.errors[0];
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0]);
    refuse(`${file}:${line}:${col}`, [{ path: [], seen: error.message, expected: 'valid YAML' }]);
  }
  try {
    const data: unknown = document.toJS();
    if (isShallow(data)) return data;
  } catch (cause) {
    return refuse(file, [{ path: [], seen: messageOf(cause), expected: 'valid YAML' }]);
  }
  const seen = `nested deeper than ${MAX_DEPTH} levels, or within itself`;
  return refuse(file, [{ path: [], seen, expected: 'rules' }]);
}

function describe(issue: z.core.$ZodIssue, data: unknown): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: [...issue.path, key],
      seen: 'a key that is not known here',
      expected: 'see the rules of a scripted model in docs/guides/model-providers.md',
    }));
  }
  return [{ path: issue.path, seen: shown(valueAt(data, issue.path)), expected: expectationOf(issue) }];
}

function compile(rule: ScriptData['rules'][number], path: Path, problems: Problem[]): Rule {
  const { agent, mode, tool, n, last } = rule.when ?? {};
  const pattern = last === undefined ? undefined : patternOf(last, [...path, 'when', 'last'], problems);
  const groups = pattern !== undefined && 'expression' in pattern ? groupsOf(pattern.expression) : 0;
  const known = new Set([
    'last',
    'agent',
    'conversation',
    'n',
    ...Array.from({ length: groups + 1 }, (_, k) => `${k}`),
  ]);
  if (groups === 0 && !(pattern && 'expression' in pattern)) known.delete('0');
  for (const name of placeholdersOf(rule.reply)) {
    if (known.has(name)) continue;
    const expected = `one of ${[...known].map((key) => `{{${key}}}`).join(', ')}`;
    problems.push({ path: [...path, 'reply'], seen: `{{${name}}}`, expected });
  }
  return { agent, mode, tool, n, last: pattern, reply: rule.reply };
}

/** `/…/flags` is a regular expression, anything else a substring. */
function patternOf(last: string, path: Path, problems: Problem[]): LastPattern {
  const [, source, flags] = /^\/(.+)\/([dgimsuvy]*)$/s.exec(last) ?? [];
  if (source === undefined || flags === undefined) return { text: last };
  try {
    // The flags g and y would keep state between matches.
    return { expression: new RegExp(source, flags.replaceAll(/[gy]/g, '')) };
  } catch (error) {
    problems.push({ path, seen: shown(last), expected: `a valid regular expression (${messageOf(error)})` });
    return { text: last };
  }
}

/** The number of groups of an expression: made to match the empty string, its result has one slot per group. */
function groupsOf(expression: RegExp): number {
  return (new RegExp(`${expression.source}|`, expression.flags).exec('')?.length ?? 1) - 1;
}

function refuse(file: string, problems: readonly Problem[]): never {
  const lines = problems.map(
    ({ path, seen, expected }) =>
      `- ${file}${path.length === 0 ? '' : `: ${keyText(path)}`}\n    seen:     ${seen}\n    expected: ${expected}`,
  );
  throw new ParleyError(
    'CONFIG_INVALID',
    ['the script of a scripted model is not valid', ...lines].join('\n'),
    {
      hint: 'correct what is listed and start again',
    },
  );
}

/** `rules[0].when.last`. */
function keyText(path: Path): string {
  return path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '');
}
