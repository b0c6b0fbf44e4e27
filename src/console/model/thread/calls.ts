import type { CallPlace, EntryOf, MessageEntry } from '../../../conversation/index.ts';
import { askedIn } from '../../../conversation/progress/open-calls.ts';
import { type DiffLine, differenceLines, diffLines } from '../../../conversation/text/line-diff.ts';
import { plainCommand } from '../../../conversation/tools/shell-command.ts';
import { canonicalArguments } from '../../../kernel/hidden.ts';
import { isRecord, type JsonRecord, parseJson } from '../../../kernel/json.ts';

/** Tool calls of messages, their approvals and results, and the questions among them. */

export type Calls = readonly Call[];

export interface Call {
  readonly place: CallPlace;
  readonly id: string;
  readonly tool: string;
  /** As it runs (HIDDEN-4). */
  readonly arguments: string;
  /** As the agent asked for it, where a person changed that. */
  readonly asked?: string | undefined;
  readonly status: 'asked' | 'running' | 'done';
  readonly hasRun?: boolean; // it had started before its result
  /** The program whose post brought its tool answers it. */
  readonly isCallers?: true;
  readonly approval: Approval | null;
  /** Null while its approval is pending. */
  readonly answer: EntryOf<'approval-answered'> | null;
  /** The answer that let it run, if its approval is now a form of its server. */
  readonly released?: EntryOf<'approval-answered'> | null | undefined;
  readonly result: MessageEntry | null;
  /** The author of the message that is the result; null: no message is. */
  readonly resultBy: string | null;
  /** Another entry shows it (a handoff, a delegation), so it needs no row. */
  readonly isTold: boolean;
}

export type Approval = EntryOf<'approval-requested'>;

/** A person must say whether it runs, or what its outcome was. */
export const isPending = ({ approval, answer }: Call): boolean => approval !== null && answer === null;

export type Question = Readonly<{ call: Call; agent: string; question: string; options: readonly string[] }>;

export function callsOf(entry: MessageEntry): Calls {
  return (entry.tool_calls ?? []).map(({ id, function: { name, arguments: text } }, position) => ({
    place: { index: entry.index, position },
    id,
    tool: name,
    arguments: canonicalArguments(text),
    status: 'asked',
    ...(entry.callerCalls?.includes(position) && { isCallers: true }),
    approval: null,
    answer: null,
    result: null,
    resultBy: null,
    isTold: false,
  }));
}

/** The question that an agent asks with this call; null: the call is not a question. */
export function questionOf(call: Call, agent: string): Question | null {
  if (call.tool !== 'ask') return null;
  const { question, options } = askedIn(call.arguments) ?? { question: '', options: [] };
  return { call, agent, question, options };
}

/** Empty if the model did not write a JSON object. */
export function argumentsOf(call: Call): JsonRecord {
  const value = parseJson(call.arguments);
  return isRecord(value) ? value : {};
}

/** An argument as a person reads it before an approval: the value in full. */
export type ArgumentView =
  /** JSON: a quoted text differs from a number. */
  | { readonly kind: 'value'; readonly name: string; readonly text: string }
  /** A text that is shown unquoted, in lines of its own. */
  | { readonly kind: 'text'; readonly name: string; readonly text: string }
  | { readonly kind: 'edit'; readonly name: string; readonly lines: readonly DiffLine[] };

/** Shown unquoted even if they are one line. */
const TEXTS = ['command', 'content'];

/**
 * The difference of two texts is shown for `fs_edit` alone: what other tools do with texts of similar names is unknown. What a permission
 * shows of a change is one already.
 */
export function argumentViews(tool: string, given: JsonRecord): ArgumentView[] {
  const edit = tool === 'fs_edit' ? editOf(given) : null;
  const rest = Object.entries(given).flatMap(([name, value]): ArgumentView[] => {
    if (edit && (name === 'find' || name === 'replace')) return [];
    const isPermitted = name === 'shown' && tool.startsWith('permit_');
    const lines = isPermitted && typeof value === 'string' ? differenceLines(value) : null;
    if (lines) return [{ kind: 'edit', name, lines }];
    const isText = typeof value === 'string' && (TEXTS.includes(name) || value.includes('\n'));
    return [
      isText ? { kind: 'text', name, text: value } : { kind: 'value', name, text: JSON.stringify(value) },
    ];
  });
  return edit ? [...rest, edit] : rest;
}

function editOf({ find, replace }: JsonRecord): ArgumentView | null {
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
  | { readonly reason: string };

/** A rule for `parley.yaml` that allows this call. The policy compares a command of `shell` in its plain form. */
export function policyRule(agent: string, tool: string, given: JsonRecord): OfferedRule {
  const plain = tool === 'shell' ? plainCommand(String(given.command)) : null;
  if (tool === 'shell' && plain === null) return { reason: NOT_PLAIN };
  const compared: JsonRecord = plain === null ? given : { ...given, command: plain };
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
