import { type DiffLine, diffLines } from '../../../conversation/text/line-diff.ts';
import { plainCommand } from '../../../conversation/tools/shell-command.ts';

/** The arguments of a call as a person reads them before an approval: every value in full. */

export type ArgumentView =
  /** JSON: a quoted text differs from a number. */
  | { readonly kind: 'value'; readonly name: string; readonly text: string }
  /** A text that is shown unquoted, in lines of its own. */
  | { readonly kind: 'text'; readonly name: string; readonly text: string }
  | { readonly kind: 'edit'; readonly name: string; readonly lines: readonly DiffLine[] };

/** Shown unquoted even if they are one line. */
const TEXTS = ['command', 'content'];

type Given = Readonly<Record<string, unknown>>;

/** A difference is shown for `fs_edit` alone: what other tools do with two texts of similar names is unknown. */
export function argumentViews(tool: string, given: Given): ArgumentView[] {
  const edit = tool === 'fs_edit' ? editOf(given) : null;
  const rest = Object.entries(given).flatMap(([name, value]): ArgumentView[] => {
    if (edit && (name === 'find' || name === 'replace')) return [];
    const isText = typeof value === 'string' && (TEXTS.includes(name) || value.includes('\n'));
    return [
      isText ? { kind: 'text', name, text: value } : { kind: 'value', name, text: JSON.stringify(value) },
    ];
  });
  return edit ? [...rest, edit] : rest;
}

/** Every line of both texts. */
function editOf({ find, replace }: Given): ArgumentView | null {
  if (typeof find !== 'string' || typeof replace !== 'string') return null;
  return { kind: 'edit', name: 'change', lines: diffLines(find, replace) };
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
