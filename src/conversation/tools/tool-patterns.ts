/**
 * A list names tools by name, or by a pattern `mcp__<server>__<beginning>*` for tools of one MCP server.
 * Two patterns overlap only where one contains the other.
 */

/** A wire name, or a pattern. Before its `*` it has at most 55 characters, since longer wire names are shortened to that. */
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

/** The tools in both lists. */
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
