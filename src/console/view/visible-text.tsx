import { escapeHidden } from '../../kernel/hidden.ts';

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals colour their output with them
const ANSI = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\))/g;
const ESCAPES = /((?:\\u[0-9a-f]{4})+)/;

/** A text in full. Hidden characters are marked escapes, so that they differ from a written backslash. */
export function VisibleText({
  text,
  isOutput = false,
}: {
  readonly text: string;
  readonly isOutput?: boolean;
}) {
  const shown = isOutput ? text.replace(ANSI, '') : text;
  // Only what escaping adds is marked: the text is split at its own characters first.
  const parts = shown.split(/([^\n\t\x20-\x7e]+)/).flatMap((part, n) => {
    if (n % 2 === 0) return [part];
    return escapeHidden(part)
      .split(ESCAPES)
      .map((piece, m) => (m % 2 === 1 ? <mark class="hidden-character">{piece}</mark> : piece));
  });
  return <>{parts}</>;
}
