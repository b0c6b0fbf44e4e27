import { isJson, readArguments } from './json.ts';
import { INVISIBLE } from './text.ts';

/**
 * Text for display to a person who approves or refuses because of it.
 *
 * HIDDEN-1  No control, bidi or invisible character remains: each becomes a JSON escape (`\u202e`), as does every blank except
 *           the space.
 * HIDDEN-2  Different texts look different: escaped JSON is the same JSON, and in any other text a backslash is doubled.
 * HIDDEN-3  Nothing is cut, and the result is one line.
 * HIDDEN-4  Arguments have one form, which is shown and which runs: a repeated key once, with its last value, a number as it
 *           is read, no arguments as `{}`. To write this form again changes nothing.
 */

const HIDDEN = new RegExp(`(?![ \\t\\n])[${INVISIBLE}\\p{Surrogate}]`, 'gu');

/** HIDDEN-1, except for tab and newline. The result of JSON is the same JSON. */
export function escapeHidden(json: string): string {
  return json.replace(HIDDEN, (character) =>
    character
      .split('') // a character beyond U+FFFF needs two escapes
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** `escapeHidden` with tab and newline escaped too. */
export function inOneLine(text: string): string {
  return escapeHidden(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** HIDDEN-1 to HIDDEN-3, for a text that is not JSON, such as a name. */
export function visibleText(text: string): string {
  return inOneLine(text.replaceAll('\\', '\\\\'));
}

/** HIDDEN-4, of the arguments of a call as a model wrote them. What cannot run stays as it is. */
export function canonicalArguments(text: string): string {
  const read = readArguments(text);
  return read.ok ? escapeHidden(JSON.stringify(read.value)) : text;
}

/** HIDDEN-1 to HIDDEN-4, also of arguments that cannot run. */
export function visibleArguments(text: string): string {
  const canonical = canonicalArguments(text);
  return isJson(canonical) ? escapeHidden(plainJson(canonical)) : `(not JSON) ${visibleText(text)}`;
}

/** HIDDEN-4. What is nested too deeply to be written again cannot run; it stays as it is, on one line. */
function plainJson(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json.replace(/[\t\n\r]/g, ' ');
  }
}

/** The call that runs if a person approves it. */
export function visibleCall(tool: string, given: string): string {
  return `${visibleText(tool)} ${visibleArguments(given)}`;
}
