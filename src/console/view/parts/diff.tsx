import type { MarkedLine } from '../../model/changed-words.ts';
import { VisibleText } from './visible-text.tsx';

const LABELS = { same: '', gone: 'removed: ', added: 'added: ' } as const;

/** A line of a diff, with its changed part marked. */
export function Line({ line: { op, text, mark: [from, to] = [0, 0] } }: { readonly line: MarkedLine }) {
  const Tag = op === 'gone' ? 'del' : op === 'added' ? 'ins' : 'span';
  return (
    <Tag class={`line ${op}`}>
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
}
