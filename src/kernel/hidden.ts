import { isJson } from './json.ts';
import { INVISIBLE } from './text.ts';

/**
 * Text as a person is shown it who decides by it.
 *
 * HIDDEN-1  No control, bidi or invisible character remains: each is an escape of JSON (`\u202e`), and so is every blank
 *           but the space.
 * HIDDEN-2  No two texts look the same: the escapes of JSON say the same JSON, and in any other text a backslash is doubled.
 * HIDDEN-3  Nothing is cut, and it is one line.
 */

const HIDDEN = new RegExp(`(?![ \\t\\n])[${INVISIBLE}\\p{Surrogate}]`, 'gu');

/** HIDDEN-1, but for tab and newline. Of JSON: the same JSON. */
export function escapeHidden(json: string): string {
  return json.replace(HIDDEN, (character) =>
    character
      .split('') // an escape of JSON is half of a character beyond U+FFFF
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}

/** The same, in one line. */
export function inOneLine(text: string): string {
  return escapeHidden(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t');
}

/** HIDDEN-1 to HIDDEN-3, of a text that is no JSON, such as a name. */
export function visibleText(text: string): string {
  return inOneLine(text.replaceAll('\\', '\\\\'));
}

/** HIDDEN-1 to HIDDEN-3, of the arguments of a call as a model wrote them. */
export function visibleArguments(text: string): string {
  // A line break or a tab in JSON is between its values.
  return isJson(text) ? escapeHidden(text.replace(/[\t\n\r]/g, ' ')) : `(not JSON) ${visibleText(text)}`;
}

/** What will run if a person approves it. */
export function visibleCall(tool: string, given: string): string {
  return `${visibleText(tool)} ${visibleArguments(given)}`;
}
