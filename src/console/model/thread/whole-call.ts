import { type DiffLine, diffHunks } from '../../../conversation/text/line-diff.ts';

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

/** A rule that allows every call of the tool, for `parley.yaml`. */
export function policyRule(agent: string, tool: string, given: Given): string {
  const match = Object.entries(given).flatMap(([name, value]) =>
    typeof value === 'string' && value.length <= 200 && ['command', 'path'].includes(name)
      ? [`        ${name}: ${JSON.stringify(`^${value.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}$`)}`]
      : [],
  );
  return [
    'tools:',
    '  policy:',
    `    - agent: ${agent}`,
    `      tool: ${tool}`,
    ...(match.length > 0 ? ['      match:', ...match] : []),
    '      allow: true',
  ].join('\n');
}
