import { escapeHidden } from '../../../kernel/hidden.ts';
import { withoutAnsi } from '../../model/format.ts';

const ESCAPES = /((?:\\u[0-9a-f]{4})+)/;

/** A text in full. Hidden characters are marked escapes, so that they differ from a written backslash. */
export function VisibleText({
  text,
  isOutput = false,
}: {
  readonly text: string;
  readonly isOutput?: boolean;
}) {
  const shown = isOutput ? withoutAnsi(text) : text;
  // Only what escaping adds is marked: the text is split at its own characters first.
  const parts = shown.split(/([^\n\t\x20-\x7e]+)/).flatMap((part, n) => {
    if (n % 2 === 0) return [part];
    return escapeHidden(part)
      .split(ESCAPES)
      .map((piece, m) => (m % 2 === 1 ? <mark class="hidden-character">{piece}</mark> : piece));
  });
  return <>{parts}</>;
}
