import { type DiffLine, diffHunks } from '../../../conversation/text/line-diff.ts';
import { plainCommand } from '../../../conversation/tools/shell-command.ts';

/** The arguments of a call as a person reads them before an approval: every value in full. */

export type ArgumentView =
  | { readonly kind: 'value'; readonly name: string; readonly text: string }
  /** A text that is shown unquoted, in lines of its own. */
  | { readonly kind: 'text'; readonly name: string; readonly text: string }
  | { readonly kind: 'edit'; readonly name: string; readonly lines: readonly DiffLine[] };

/** Names of the old and new text in tools that edit a part of a file. */
const EDITS = [
  ['find', 'replace'],
  ['old_string', 'new_string'],
  ['oldText', 'newText'],
] as const;
/** Shown unquoted even if they are one line. */
const TEXTS = ['command', 'content'];

type Given = Readonly<Record<string, unknown>>;

export function argumentViews(given: Given): ArgumentView[] {
  const edit = editOf('change', given);
  const taken: readonly string[] = edit ? edit.names : [];
  const rest = Object.entries(given).flatMap(([name, value]): ArgumentView[] => {
    if (taken.includes(name)) return [];
    const edits = Array.isArray(value) ? value.map((one: unknown) => editOf(name, one)) : [];
    if (edits.length > 0 && edits.every((one) => one !== null)) return edits.map(({ view }) => view);
    if (typeof value !== 'string') return [{ kind: 'value', name, text: JSON.stringify(value) }];
    const isText = TEXTS.includes(name) || value.includes('\n');
    return [{ kind: isText ? 'text' : 'value', name, text: value }];
  });
  return edit ? [...rest, edit.view] : rest;
}

function editOf(name: string, value: unknown): { names: readonly string[]; view: ArgumentView } | null {
  if (typeof value !== 'object' || value === null) return null;
  const given = value as Given;
  for (const [from, to] of EDITS) {
    const [before, after] = [given[from], given[to]];
    if (typeof before !== 'string' || typeof after !== 'string') continue;
    const extra = name === 'change' ? [] : Object.keys(given).filter((key) => key !== from && key !== to);
    if (extra.length > 0) continue; // what is not part of the edit must be visible
    const lines = diffHunks(`${before}\n`, `${after}\n`).flatMap((hunk) => hunk.lines);
    return { names: [from, to], view: { kind: 'edit', name, lines } };
  }
  return null;
}

export type OfferedRule =
  | {
      readonly rule: string;
      /** The arguments whose value it fixes, and those that it leaves open. */
      readonly fixed: readonly string[];
      readonly open: readonly string[];
    }
  /** Why no rule can fit. */
  | { readonly reason: string };

/** A rule for `parley.yaml` that allows this call. The policy compares a command of `shell` in its plain form. */
export function policyRule(agent: string, tool: string, given: Given): OfferedRule {
  const plain = tool === 'shell' ? plainCommand(String(given.command)) : null;
  if (tool === 'shell' && plain === null) return { reason: NOT_PLAIN };
  const compared: Given = plain === null ? given : { ...given, command: plain };
  const fixed = ['command', 'path'].filter((name) => typeof compared[name] === 'string');
  const match = fixed.map((name) => {
    const pattern = `^${String(compared[name]).replace(SYNTAX, '\\$&')}$`;
    return `        ${name}: ${JSON.stringify(pattern)}`;
  });
  const rule = [
    'tools:',
    '  policy:',
    `    - agent: ${agent}`,
    `      tool: ${tool}`,
    ...(match.length > 0 ? ['      match:', ...match] : []),
    '      allow: true',
  ].join('\n');
  return { rule, fixed, open: Object.keys(given).filter((name) => !fixed.includes(name)) };
}

const SYNTAX = /[\\^$.*+?()[\]{}|/]/g;
const NOT_PLAIN =
  'No rule can allow this command. A rule fits only one plain command: without operators, redirections, variables, patterns, escapes, assignments and line ends.';
