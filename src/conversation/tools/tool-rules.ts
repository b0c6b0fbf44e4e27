import { type JsonRecord, parseJson } from '../../kernel/index.ts';
import type { Risk } from '../log/entry.ts';
import type { FilePart } from '../log/parts.ts';

/**
 * The port to the rules for tools that act on the world: may a call run, does it need an approval, or is it refused?
 * The same call, configuration and links in the project give the same judgement.
 */

export type Judgement =
  /** Run it: safe calls concurrently, a risky one alone and in its position. */
  | { readonly kind: 'run'; readonly risk: Risk }
  /** A person must approve it first. */
  | {
      readonly kind: 'ask';
      readonly risk: 'risky';
      readonly why: string;
      /** Digest of the tool definition that an approval accepts, if its server changed the tool. */
      readonly accepts?: string;
      /** The calls that a person may allow with this one, in words: those with the same words. Absent: none. */
      readonly covers?: string;
    }
  /** The result is an error for the model: unknown tool, not this agent's, wrong arguments, forbidden. */
  | { readonly kind: 'refuse'; readonly code: string; readonly message: string };

export interface ToolCallRequest {
  readonly agent: string;
  readonly name: string;
  /** The model's JSON text. */
  readonly arguments: string;
  /** Wire names of the agent's tools in its setting. */
  readonly available: readonly string[];
}

/** Whose schema it is: of a caller's tool, of the question of a tool's server, or of a workflow. */
export type SchemaAuthor = 'caller' | 'server' | 'workflow';

export interface ToolRules {
  judge(request: ToolCallRequest): Judgement;
  /** A toolbox has a tool of this name, whoever may use it. Absent: none does. */
  has?(name: string): boolean;
  /** Why these cannot be the parameters of a tool that a post brings; null: they can. Absent: nothing is checked. */
  schemaFault?(parameters: JsonRecord): string | null;
  /** Why a value does not match a schema, such as the parameters of such a tool; null: it does, or it cannot be said. */
  argumentsFault?(name: string, schema: JsonRecord, given: unknown, by: SchemaAuthor): string | null;
  /** Hash of arguments: an approval is valid for them only (L11). */
  fingerprint(text: string): string;
}

/** A record of the audit log: the part that the conversation's log can confirm. */
export interface AuditedCall {
  readonly type: string;
  /** `entry`: the index of the assistant entry; `position`: the call's position in it (L10). */
  readonly call: { readonly entry: number; readonly position: number };
  readonly tool: string;
  /** The result of a call that completed, and its files. */
  readonly result?: string;
  readonly files?: readonly FilePart[];
}

/** The outcome of a call as its runner recorded it, for a call without a result in the log. */
export interface AuditedOutcome {
  readonly index: number;
  readonly position: number;
  /** Null: the call did not run, and will not unless it is started again. */
  readonly content: string | null;
  readonly files?: readonly FilePart[] | undefined;
}

/** What a recovery did, for logs and metrics. */
export interface RepairCount {
  repaired: number;
  retried: number;
  unknown: number;
}

/**
 * A list names tools by name, or by a pattern `mcp__<server>__<beginning>*` for tools of one MCP server.
 * Two patterns overlap only where one contains the other. Before its `*` a pattern has at most 55 characters, since longer wire names are shortened to that.
 */
export const TOOL_NAME_OR_PATTERN =
  /^(?:[A-Za-z0-9_-]{1,64}|(?=.{1,56}$)mcp__[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*__[A-Za-z0-9_-]*\*)$/;

/** Whether `listed` is the tool `name`, or contains the pattern `name`. */
export function coversTool(listed: string, name: string): boolean {
  return listed.endsWith('*') ? name.startsWith(listed.slice(0, -1)) : listed === name;
}

export function listsTool(list: readonly string[], name: string): boolean {
  return list.some((listed) => coversTool(listed, name));
}

/** Replaces each pattern by the tools of `offered` that it covers; a pattern that covers none remains. */
export function expandTools(list: readonly string[], offered: Iterable<string>): string[] {
  const names = [...offered];
  const expanded = list.flatMap((listed) => {
    const covered = listed.endsWith('*') ? names.filter((name) => coversTool(listed, name)) : [];
    return covered.length > 0 ? covered : [listed];
  });
  return [...new Set(expanded)];
}

export function sharedTools(left: readonly string[], right: readonly string[]): string[] {
  const shared = [
    ...left.filter((name) => listsTool(right, name)),
    ...right.filter((name) => listsTool(left, name)),
  ];
  return [...new Set(shared)];
}

/** The value for a tool in a table by name and pattern: its name first, else the longest pattern that covers it. */
export function forTool<Value>(table: Readonly<Record<string, Value>>, name: string): Value | undefined {
  if (Object.hasOwn(table, name)) return table[name];
  const [longest] = Object.keys(table)
    .filter((key) => coversTool(key, name))
    .sort((a, b) => b.length - a.length);
  return longest === undefined ? undefined : table[longest];
}

/** The tools by which a coding agent in another process asks for a permission, by the kind of its call. */
export const PERMIT = { edit: 'permit_edit', execute: 'permit_execute', other: 'permit_other' } as const;

/** Parley calls them for the program: no agent is offered them. */
export const PERMITS: ReadonlySet<string> = new Set(Object.values(PERMIT));

/** Their result if the call may run: its last line, since what a person said with the approval precedes it. */
export const PERMITTED = 'permitted';

/** The error of a call that a person denied. */
export const DENIED = 'a person denied this';

/** What the result of a permission says, and the words of the person who gave or refused it; empty: there are none. */
export function permissionIn(result: string): { readonly isGiven: boolean; readonly words: string } {
  const isGiven = result.endsWith(`\n${PERMITTED}`) || result === PERMITTED;
  if (isGiven) return { isGiven, words: result.slice(0, -PERMITTED.length).trim() };
  const { error } = Object(parseJson(result)) as { readonly error?: { readonly message?: unknown } };
  const said = String(error?.message ?? '');
  return { isGiven, words: said.startsWith(`${DENIED}: `) ? said : '' };
}
