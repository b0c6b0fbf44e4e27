import type { DiffLine } from '../../../conversation/index.ts';
import { escapeHidden, inOneLine } from '../../../kernel/hidden.ts';
import { markedLines, withoutAnsi } from '../../model/format.ts';

/** A text that scrolls: the keyboard reaches it. */
export function Scrolled({ class: look, ...text }: VisibleTextProps & { readonly class?: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <pre class={look} tabIndex={0}>
      <VisibleText {...text} />
    </pre>
  );
}

const ESCAPES = /((?:\\(?:u[0-9a-f]{4}|[nt]))+)/;

interface VisibleTextProps {
  readonly text: string;
  readonly isOutput?: boolean;
  /** Tabs and line ends are hidden characters, too. */
  readonly isLine?: boolean;
}

/** A text in full. Hidden characters are marked escapes, so that they differ from a written backslash. */
export function VisibleText({ text, isOutput = false, isLine = false }: VisibleTextProps) {
  const shown = isOutput ? withoutAnsi(text) : text;
  // Only what escaping adds is marked: the text is split at its own characters first.
  const parts = shown.split(isLine ? /([^\x20-\x7e]+)/ : /([^\n\t\x20-\x7e]+)/).flatMap((part, n) => {
    if (n % 2 === 0) return [part];
    return (isLine ? inOneLine : escapeHidden)(part)
      .split(ESCAPES)
      .map((piece, m) => (m % 2 === 1 ? <mark class="hidden-character">{piece}</mark> : piece));
  });
  return <>{parts}</>;
}

/** A text of Parley, with its commands and names as code. */
export const Quoted = ({ text }: { readonly text: string }) => (
  <>{text.split('`').map((part, place) => (place % 2 === 1 ? <code key={place}>{part}</code> : part))}</>
);

const LABELS = { same: '', gone: 'removed: ', added: 'added: ' } as const;
const TAGS = { same: 'span', gone: 'del', added: 'ins' } as const;

export function Diff({ lines }: { readonly lines: readonly DiffLine[] }) {
  return (
    <div class="diff frame text-tiny">
      <Lines lines={lines} />
    </div>
  );
}

export function Lines({ lines }: { readonly lines: readonly DiffLine[] }) {
  return markedLines(lines).map(({ op, text, number, mark: [from, to] = [0, 0] }, place) => {
    const Tag = TAGS[op];
    return (
      <Tag key={place} class={`line ${op}`} data-number={number}>
        <span class="unseen">{LABELS[op]}</span>
        <VisibleText text={text.slice(0, from)} />
        {from < to && (
          <mark>
            <VisibleText text={text.slice(from, to)} />
          </mark>
        )}
        <VisibleText text={text.slice(to)} />
      </Tag>
    );
  });
}
