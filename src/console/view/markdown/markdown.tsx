import { useLayoutEffect, useReducer, useRef } from 'preact/hooks';
import { toClipboard } from '../parts/controls.tsx';
import { inOwnTask, readable, render } from './render.ts';

export interface MarkdownProps {
  readonly text: string;
  /** By a person, line by line. */
  readonly isTyped?: boolean;
  /** More is coming: then only its last block is rendered again. */
  readonly isGrowing?: boolean;
}

/** A text as elements. A selection in it is kept while it grows. */
export function Markdown({ text, isTyped = false, isGrowing = false }: MarkdownProps) {
  const place = useRef<HTMLDivElement>(null);
  /** The blocks that no longer change: their text and their last node. */
  const finished = useRef<{ readonly text: string; readonly last: ChildNode | null }>(NOTHING);
  const [attempt, again] = useReducer((count: number) => count + 1, 0);
  useLayoutEffect(() => {
    const div = place.current;
    if (!div) return;
    const shown = readable(text);
    const before = isGrowing && shown.startsWith(finished.current.text) ? finished.current : NOTHING;
    const { fragment, lastBlock, isLate } = render(shown.slice(before.text.length), isTyped);
    div.onclick = ({ target }) => copyCode(target);
    grow(div, fragment, before.last ? before.last.nextSibling : div.firstChild);
    const last = div.lastElementChild?.previousSibling;
    finished.current =
      isGrowing && lastBlock > 0 && last && !isLate
        ? { text: shown.slice(0, before.text.length + lastBlock), last }
        : before;
    return isLate ? inOwnTask(() => again(undefined)) : undefined;
  }, [text, isTyped, isGrowing, attempt]);
  return <div class="prose" dir="auto" ref={place} />;
}

const NOTHING = { text: '', last: null };

/** As it is shown, with escapes for what changes the reading direction. */
async function copyCode(target: EventTarget | null): Promise<void> {
  const button = target instanceof Element ? target.closest('.copy-code') : null;
  if (!button) return;
  await toClipboard(button.parentElement?.querySelector('pre')?.textContent ?? '');
  button.textContent = 'Copied';
  setTimeout(() => {
    button.textContent = 'Copy';
  }, 2_000);
}

/**
 * Changes the children of `place` to those of `next`, from `first` on. Nodes that stay the same are kept, and a text that
 * grows keeps its node: so a selection in them is kept.
 */
function grow(place: Node, next: Node, first: ChildNode | null = place.firstChild): void {
  let at = first;
  for (const wanted of [...next.childNodes]) {
    if (at === null) {
      place.appendChild(wanted);
      continue;
    }
    const after: ChildNode | null = at.nextSibling;
    if (at instanceof Text && wanted instanceof Text) replaceText(at, wanted.data);
    else if (at.cloneNode().isEqualNode(wanted.cloneNode())) grow(at, wanted);
    else at.replaceWith(wanted);
    at = after;
  }
  while (at !== null) {
    const after: ChildNode | null = at.nextSibling;
    at.remove();
    at = after;
  }
}

/** Replaces only the end that differs. */
function replaceText(node: Text, data: string): void {
  if (node.data === data) return;
  let same = 0;
  while (same < node.length && node.data[same] === data[same]) same++;
  node.replaceData(same, node.length - same, data.slice(same));
}
