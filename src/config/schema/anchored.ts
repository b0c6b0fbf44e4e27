/**
 * Patterns of rules that allow. Such a rule has to describe the whole argument: `^git status` would allow
 * `git status; id` as well, and `^a|b$` everything that begins with `a`.
 */

export function isRegularExpression(source: string): boolean {
  try {
    new RegExp(source, 'u');
    return true;
  } catch {
    return false;
  }
}

/** The same pattern, anchored at both ends; a pattern that is anchored stays as it is. */
export function wholePattern(source: string): string {
  const { alternatives, endsAnchored } = outline(source);
  if (alternatives === 1) {
    const start = source.startsWith('^') ? '' : '^';
    return `${start}${source}${endsAnchored ? '' : '$'}`;
  }
  const inner = source.slice(source.startsWith('^') ? 1 : 0, endsAnchored ? -1 : undefined);
  return `^(${inner})$`;
}

/** What stands outside of groups and classes: how many alternatives, and whether the last character is an anchor. */
function outline(source: string): { readonly alternatives: number; readonly endsAnchored: boolean } {
  let alternatives = 1;
  let depth = 0;
  let isClass = false;
  let endsAnchored = false;
  for (let at = 0; at < source.length; at += 1) {
    const character = source[at];
    endsAnchored = character === '$' && !isClass;
    if (character === '\\') at += 1;
    else if (isClass) isClass = character !== ']';
    else if (character === '[') isClass = true;
    else if (character === '(') depth += 1;
    else if (character === ')') depth -= 1;
    else if (character === '|' && depth === 0) alternatives += 1;
  }
  return { alternatives, endsAnchored };
}
