/** A long text in a few words. Never splits a character. */

/** Of a large result, in code points. */
export const PREVIEW_LENGTH = 500;

export function firstCodePoints(text: string, count: number): string {
  return [...text.slice(0, count * 2)].slice(0, count).join('');
}

/** A result as a reduction leaves it. */
export function previewOf(text: string, index: number, length = PREVIEW_LENGTH): string {
  const begins = firstCodePoints(text, length);
  return `${begins}${begins && '\n'}[shortened: recall ${index}]`;
}
