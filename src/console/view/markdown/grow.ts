/**
 * Changes the children of `place` to those of `next`, from `first` on. Nodes that stay the same are kept, and a text that
 * grows keeps its node: so a selection in them is kept.
 */
export function grow(place: Node, next: Node, first: ChildNode | null = place.firstChild): void {
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
